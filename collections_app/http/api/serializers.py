"""What the management endpoints take and show: a collection's settings, a document and how far it has come."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection
from django.db.models import Q
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.models import Role
from collections_app import access
from collections_app.http import parameters
from collections_app.http.api.base import Strict
from collections_app.metadata import validation as document_metadata
from collections_app.models import Collection
from collections_app.models.collections import LARGE_OVERLAP, default_overlap, is_overlap_too_large
from collections_app.models.documents import State
from system.errors import BadRequest

MOST_ROLES = 100


@extend_schema_field({"type": "number", "minimum": 0, "maximum": 1})
class Share(serializers.Field[float, Any, float, Any]):
    """A JSON number from 0 to 1: DRF's own would take "nan"."""

    def to_internal_value(self, data: Any) -> float:
        try:
            return parameters.share(self.field_name or "", data)
        except BadRequest as error:
            raise serializers.ValidationError(error.message) from None

    def to_representation(self, value: float) -> float:
        return value


@extend_schema_field({"type": "array", "items": {"type": "string"}, "maxItems": MOST_ROLES})
class Roles(serializers.Field[list[str], Any, list[str], Any]):
    """Names or ids of roles; shown as names. One that was deleted meanwhile shows as its id, and gives nothing."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or not all(isinstance(each, str) for each in data) or len(data) > MOST_ROLES:
            self.fail("wrong")
        roles = Role.objects.filter(Q(sys_id__in=data) | Q(name__in=data)).values_list("sys_id", "name")
        known = {word: sys_id for sys_id, name in roles for word in (sys_id, name)}
        if missing := [each for each in data if each not in known]:
            self.fail("missing", role=missing[0][:100])
        return list(dict.fromkeys(known[each] for each in data))

    def to_representation(self, value: Iterable[str]) -> list[str]:
        called = self.context["roles"]
        return [called.get(each, each) for each in value]

    default_error_messages = {
        "wrong": f"An array of at most {MOST_ROLES} names of roles.",
        "missing": "There is no role {role}.",
    }


def roles_called(collections: Iterable[Collection]) -> dict[str, str]:
    """Names of the roles of these collections, by their ids."""
    ids = {each for collection in collections for each in (*collection.reader_roles, *collection.writer_roles)}
    return dict(Role.objects.filter(sys_id__in=ids).values_list("sys_id", "name")) if ids else {}


class CollectionSettingsSerializer(Strict):
    """What can be set of a collection."""

    collection_name = serializers.CharField(source="name", trim_whitespace=False)
    chunk_size = serializers.IntegerField(required=False, min_value=100, max_value=8000)
    chunk_overlap = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=4000,
        help_text="At most half of chunk_size. Of a new collection without it 200, or a fifth of chunk_size below 400.",
    )
    alpha = Share(required=False)
    language = serializers.CharField(
        source="text_configuration",
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="A text search configuration of PostgreSQL for new documents; empty: guessed for each document.",
    )
    reader_roles = Roles(required=False)
    writer_roles = Roles(required=False)

    def validate_collection_name(self, value: str) -> str:
        if not isinstance(self.instance, Collection) or value != self.instance.name:
            access.check_new_name(value)
        try:
            return access.checked_name(value)
        except BadRequest as error:
            raise serializers.ValidationError(error.message) from None

    def validate_language(self, value: str) -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_ts_config WHERE cfgname = %s", [value])
            if value and cursor.fetchone() is None:
                raise serializers.ValidationError("The language does not exist.")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        before = self.instance if isinstance(self.instance, Collection) else Collection()
        size = attrs.get("chunk_size", before.chunk_size)
        if before.is_new:
            attrs = {"chunk_overlap": default_overlap(size), **attrs}
        if is_overlap_too_large(size, attrs.get("chunk_overlap", before.chunk_overlap)):
            raise serializers.ValidationError(_too_large(attrs, before))
        return attrs

    def create(self, validated_data: dict[str, Any]) -> Collection:
        return Collection(**validated_data)

    def update(self, instance: Collection, validated_data: dict[str, Any]) -> Collection:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        return instance


def _too_large(sent: dict[str, Any], before: Collection) -> dict[str, str]:
    """Said of what was sent, with the other one, which who sent it does not see."""
    for one, other in (("chunk_size", "chunk_overlap"), ("chunk_overlap", "chunk_size")):
        if other not in sent:
            return {one: f"{LARGE_OVERLAP} Its {other} is {getattr(before, other)}; send another along."}
    return {"chunk_overlap": LARGE_OVERLAP}


class Managed(CollectionSettingsSerializer):
    """A collection with its settings, its counts, and what the caller may do with it."""

    sys_id = serializers.CharField()
    documents_count = serializers.IntegerField()
    chunks_count = serializers.IntegerField()
    documents_by_status = serializers.DictField(child=serializers.IntegerField())
    embedding_model = serializers.CharField()
    next_embedding_model = serializers.CharField(
        allow_null=True, help_text="Of the vectors that are being made; searches go over to them when all are there."
    )
    created_at = serializers.CharField()
    updated_at = serializers.CharField()
    rights = serializers.ListField(child=serializers.ChoiceField(choices=("read", "write", "manage")))


@extend_schema_field({"type": "object", "additionalProperties": True})
class Metadata(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """As a load takes them in a JSON body, and refused in its words."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return document_metadata.checked(data)

    def to_representation(self, value: dict[str, Any]) -> dict[str, Any]:
        return value


class Change(Strict):
    """What can be changed of a document."""

    metadata = Metadata(help_text="The new metadata, in place of all that were there.")


class Progress(serializers.Serializer[Any]):
    chunks = serializers.IntegerField(help_text="Into how many passages its text was cut.")
    embedded = serializers.IntegerField(help_text="How many of them have their vector.")


class DocumentSerializer(serializers.Serializer[Any]):
    """A document: what was sent last, and how far it has come."""

    sys_id = serializers.CharField()
    doc_id = serializers.CharField()
    collection_name = serializers.CharField()
    document_status = serializers.ChoiceField(choices=State.choices)
    is_searched = serializers.BooleanField(help_text="Whether searches find it, or what was loaded before it.")
    error = serializers.CharField(allow_null=True)
    error_code = serializers.CharField(allow_null=True)
    warnings = serializers.ListField(child=serializers.CharField())
    filename = serializers.CharField()
    format = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.CharField()
    metadata = serializers.DictField()
    pages = serializers.IntegerField(allow_null=True)
    characters = serializers.IntegerField()
    chunks_count = serializers.IntegerField()
    generation = serializers.IntegerField()
    attempt = serializers.IntegerField()
    created_at = serializers.CharField()
    updated_at = serializers.CharField()
    ready_at = serializers.CharField(allow_null=True)
    progress = Progress(required=False, allow_null=True)
