"""Serializers of the management endpoints: collections with their settings, documents with their status."""

from collections.abc import Iterable
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Q
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.models import Role
from collections_app.embed import LOCAL_MODELS
from collections_app.http import parameters
from collections_app.http.api.base import StrictSerializer
from collections_app.http.serializers import CollectionSerializer
from collections_app.lexical.synonyms import check_synonyms
from collections_app.metadata import validation as document_metadata
from collections_app.models import Collection
from collections_app.models.collections import (
    OVERLAP_TOO_LARGE,
    InvalidName,
    check_visible_characters,
    default_overlap,
    is_overlap_too_large,
    normalize_name,
)
from collections_app.models.documents import VersionState
from collections_app.vectors import model_choice
from system.errors import BadRequest
from system.plain_sql import fetch_rows

MAX_ROLES = 100


@extend_schema_field({"type": "number", "minimum": 0, "maximum": 1})
class WeightField(serializers.FloatField):
    """A JSON number from 0 to 1. DRF's FloatField would accept "nan"."""

    def to_internal_value(self, data: Any) -> float:
        try:
            return parameters.read_weight(self.field_name or "", data)
        except BadRequest as error:
            raise serializers.ValidationError(error.message) from None


@extend_schema_field({"type": "array", "items": {"type": "string"}, "maxItems": MAX_ROLES})
class RolesField(serializers.Field[list[str], Any, list[str], Any]):
    """Names or ids of roles, returned as names. A role that was deleted is returned as its id and grants nothing."""

    def to_internal_value(self, data: Any) -> list[str]:
        if not isinstance(data, list) or not all(isinstance(role, str) for role in data) or len(data) > MAX_ROLES:
            self.fail("wrong")
        roles = Role.objects.filter(Q(sys_id__in=data) | Q(name__in=data)).values_list("sys_id", "name")
        ids = {key: sys_id for sys_id, name in roles for key in (sys_id, name)}
        if missing_roles := [role for role in data if role not in ids]:
            self.fail("missing", role=missing_roles[0][:100])
        return list(dict.fromkeys(ids[role] for role in data))

    def to_representation(self, value: Iterable[str]) -> list[str]:
        names = self.context["roles"]
        return [names.get(role, role) for role in value]

    default_error_messages = {
        "wrong": f"Must be an array of at most {MAX_ROLES} role names.",
        "missing": 'The role "{role}" does not exist.',
    }


def language_names() -> list[str]:
    return [name for (name,) in fetch_rows("SELECT DISTINCT cfgname::text FROM pg_ts_config ORDER BY cfgname::text")]


def check_language(configuration: str) -> str:
    if configuration and configuration not in language_names():
        raise ValidationError("This PostgreSQL server has no text search configuration with that name.")
    return configuration


def role_names(collections: Iterable[Collection]) -> dict[str, str]:
    ids = {role for collection in collections for role in (*collection.reader_roles, *collection.writer_roles)}
    return dict(Role.objects.filter(sys_id__in=ids).values_list("sys_id", "name")) if ids else {}


class CollectionSettingsSerializer(StrictSerializer):
    """The settings of a collection."""

    collection_name = serializers.CharField(source="name", trim_whitespace=False)
    chunk_size = serializers.IntegerField(required=False, min_value=100, max_value=8000)
    chunk_overlap = serializers.IntegerField(
        required=False,
        min_value=0,
        max_value=4000,
        help_text="At most half of chunk_size. Default: 200, or a fifth of chunk_size if chunk_size is below 400.",
    )
    alpha = WeightField(required=False)
    embedding_model_choice = serializers.ChoiceField(
        choices=list(LOCAL_MODELS),
        required=False,
        allow_blank=True,
        help_text="The local embedding model. If empty, it is chosen by the languages of the documents. Ignored if the "
        "configuration of the service names a model.",
    )
    language = serializers.CharField(
        source="text_configuration",
        required=False,
        allow_blank=True,
        max_length=63,
        help_text="The PostgreSQL text search configuration for new and reprocessed documents. If empty, it is "
        "detected per document.",
    )
    synonyms = serializers.CharField(
        required=False,
        allow_blank=True,
        trim_whitespace=False,
        help_text="Groups of words and phrases that mean the same, one group per line, separated by commas.",
    )
    doc_id_from_filename = serializers.BooleanField(
        required=False,
        help_text="Whether a file that is loaded without `doc_id` gets its file name as its `doc_id`, instead of a "
        "number. Applies to new loads.",
    )
    reader_roles = RolesField(required=False)
    writer_roles = RolesField(required=False)

    def validate_collection_name(self, value: str) -> str:
        if not isinstance(self.instance, Collection) or value != self.instance.name:
            check_visible_characters(value)
        try:
            return normalize_name(value)
        except InvalidName as error:
            raise serializers.ValidationError(error.message) from None

    def validate_language(self, value: str) -> str:
        return check_language(value)

    def validate_synonyms(self, value: str) -> str:
        return check_synonyms(parameters.require_storable("synonyms", value))

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        collection = self.instance if isinstance(self.instance, Collection) else Collection()
        size = attrs.get("chunk_size", collection.chunk_size)
        if collection.is_new:
            attrs = {"chunk_overlap": default_overlap(size), **attrs}
        if is_overlap_too_large(size, attrs.get("chunk_overlap", collection.chunk_overlap)):
            raise serializers.ValidationError(_overlap_error(attrs, collection))
        return attrs

    def update(self, instance: Collection, validated_data: dict[str, Any]) -> Collection:
        for name, value in validated_data.items():
            setattr(instance, name, value)
        instance.save()
        model_choice.apply_choice(instance)
        return instance


def _overlap_error(values: dict[str, Any], collection: Collection) -> dict[str, str]:
    """Returns the error for the field that was sent, with the stored value of the other field."""
    for field, other in (("chunk_size", "chunk_overlap"), ("chunk_overlap", "chunk_size")):
        if other not in values:
            current_text = f"The current {other} is {getattr(collection, other)}."
            return {field: f"{OVERLAP_TOO_LARGE} {current_text} Send both to change them."}
    return {"chunk_overlap": OVERLAP_TOO_LARGE}


class CollectionDetailSerializer(CollectionSettingsSerializer, CollectionSerializer):
    """A collection with its settings, its counts and the caller's rights."""

    sys_id = serializers.CharField()
    next_embedding_model = serializers.CharField(
        allow_null=True,
        help_text="The model of a re-embedding in progress. Searches use it once all vectors are stored.",
    )
    rights = serializers.ListField(child=serializers.ChoiceField(choices=("read", "write", "manage")))


@extend_schema_field({"type": "object", "additionalProperties": True})
class MetadataField(serializers.Field[dict[str, Any], Any, dict[str, Any], Any]):
    """Metadata as in the JSON body of a load, with the same error messages."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return document_metadata.validate_metadata(data)


class MetadataChangeSerializer(StrictSerializer):
    """A change to a document."""

    metadata = MetadataField(help_text="The new metadata. It replaces the existing metadata.")


class ProgressSerializer(serializers.Serializer[Any]):
    chunks = serializers.IntegerField(help_text="The number of passages.")
    embedded = serializers.IntegerField(help_text="The number of passages that have a vector.")


class DocumentSerializer(serializers.Serializer[Any]):
    """A document with the status of its newest version."""

    sys_id = serializers.CharField()
    doc_id = serializers.CharField()
    collection_name = serializers.CharField()
    document_status = serializers.ChoiceField(choices=VersionState.choices)
    is_searched = serializers.BooleanField(
        help_text="Whether searches can find this document, in its newest or an earlier version."
    )
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
    progress = ProgressSerializer(required=False, allow_null=True)
