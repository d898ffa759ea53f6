"""Collection endpoints: list, create, settings, delete, re-embed, search."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any

import django_filters
from django.db import IntegrityError, transaction
from django.db.models import Q
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from collections_app import access, embed
from collections_app.documents import counts, deletion
from collections_app.http import openapi, parameters, responses
from collections_app.http.api.base import (
    ETAG,
    OF_CHANGES,
    Management,
    Pages,
    StrictFilters,
    described,
    etag,
    operation,
    refuse_stale,
)
from collections_app.http.api.serializers import CollectionSettingsSerializer, Managed, roles_called
from collections_app.http.endpoints import asked_of
from collections_app.models import Collection
from collections_app.search.pipeline import search
from collections_app.vectors import reembedding
from system.errors import AccessDenied, Conflict, NotFound, PreconditionFailed

RELEVANT = ("query*", "k", "metadata", "mode", "alpha")


class Narrowing(django_filters.FilterSet):  # type: ignore[misc]  # has no types
    collection_name = django_filters.CharFilter(method="of_name")
    ordering = django_filters.OrderingFilter(
        fields={"name": "collection_name", "sys_created_at": "created_at", "sys_updated_at": "updated_at"}
    )

    def of_name(self, found: Any, name: str, value: str) -> Any:
        part = unicodedata.normalize("NFC", value)
        # Names are of collation C, which knows capitals of ASCII only: other letters are found as they are written.
        return found.filter(Q(name__icontains=part) | Q(name__contains=part))


class Collections(Management, GenericAPIView[Collection]):
    """The collections that the caller may read."""

    serializer_class = Managed
    pagination_class = Pages
    filter_backends = (StrictFilters,)
    filterset_class = Narrowing

    queryset = Collection.objects.none()  # for the description; each caller has another

    def get_queryset(self) -> Any:
        return access.readable(self.caller())

    @operation(
        "collections_list", "List collections to manage", {200: Managed(many=True)}, headers=openapi.PAGES, filters=True
    )
    def get(self, request: Request) -> Response:
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(shown(self.caller(), page))

    @operation(
        "collections_make",
        "Make a collection",
        {201: Managed},
        AccessDenied,
        Conflict,
        headers=ETAG,
        request=CollectionSettingsSerializer,
    )
    def post(self, request: Request) -> Response:
        # Before the body is looked at: what is wrong with it would tell which roles there are.
        if not access.may_make(self.caller()):
            raise AccessDenied("You are not allowed to create collections.")
        given = CollectionSettingsSerializer(data=parameters.body_of(request))
        given.is_valid(raise_exception=True)
        return answered(self.caller(), access.make(self.caller(), given.create(given.validated_data)), status=201)


class OneCollection(Management):
    @operation("collections_read", "Read a collection", {200: Managed}, headers=ETAG)
    def get(self, request: Request, sys_id: str) -> Response:
        return answered(self.caller(), access.open_by_id(self.caller(), sys_id, "read"))

    @operation(
        "collections_change",
        "Change a collection",
        {200: Managed},
        *OF_CHANGES,
        headers=ETAG,
        request=CollectionSettingsSerializer(partial=True),
    )
    def patch(self, request: Request, sys_id: str) -> Response:
        access.open_by_id(self.caller(), sys_id, "manage")
        return answered(self.caller(), changed(sys_id, lambda stored: self._change(request, stored)))

    def _change(self, request: Request, stored: Collection) -> None:
        refuse_stale(request, etag(stored.sys_version))
        given = CollectionSettingsSerializer(stored, data=parameters.body_of(request), partial=True)
        given.is_valid(raise_exception=True)
        given.update(stored, given.validated_data)

    @operation(
        "collections_delete",
        "Delete a collection with all in it",
        {200: described("DeletedCollection")},
        AccessDenied,
        PreconditionFailed,
    )
    def delete(self, request: Request, sys_id: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "manage")
        counted = deletion.delete_collection(collection, lambda stored: refuse_stale(request, etag(stored.sys_version)))
        return Response(responses.deleted_collection(collection, *counted))


def changed(sys_id: str, change: Callable[[Collection], None]) -> Collection:
    """Change the stored collection under its lock, so that nobody's other setting is taken back."""
    try:
        with transaction.atomic():
            stored = Collection.objects.select_for_update().filter(pk=sys_id, deleted_at__isnull=True).first()
            if stored is None:
                raise NotFound("The collection does not exist.")
            change(stored)
            stored.save()
            return stored
    except IntegrityError:
        raise Conflict("This name is already taken.", code="name_taken", field="collection_name") from None


class Reembed(Management):
    """Vectors of another model: filled in beside the old ones, which serve until then."""

    @operation("collections_reembed", "Re-embed a collection", {202: Managed}, AccessDenied, headers=ETAG, request=None)
    def post(self, request: Request, sys_id: str) -> Response:
        collection = access.open_by_id(self.caller(), sys_id, "manage")
        reembedding.start(collection, embed.default_space())
        return answered(self.caller(), access.open_by_id(self.caller(), sys_id, "read"), status=202)


class Search(Management):
    @operation(
        "collections_search",
        "Search a collection",
        {200: described("Passage", is_list=True)},
        headers=openapi.SEARCH_MODE,
        in_query=openapi.beside_a_body(*RELEVANT),
        request={"application/json": openapi.object_of(*RELEVANT)},
    )
    def post(self, request: Request, sys_id: str) -> Response:
        asked = asked_of(parameters.of_request(request, [name.rstrip("*") for name in RELEVANT]))
        collection = access.open_by_id(self.caller(), sys_id, "read")
        return responses.passages(search([collection], asked))


def answered(caller: User, collection: Collection, status: int = 200) -> Response:
    return Response(shown(caller, [collection])[0], status=status, headers={"ETag": etag(collection.sys_version)})


def shown(caller: User, collections: Sequence[Collection]) -> list[dict[str, Any]]:
    """What the endpoints show of them, with their settings and what the caller may do."""
    roles = roles_called(collections)
    counted = counts.of([each.pk for each in collections])
    return [
        {
            "sys_id": each.pk,
            **CollectionSettingsSerializer(each, context={"roles": roles}).data,
            **responses.collection(each, counted[each.pk]),
            "next_embedding_model": each.next_space.model if each.next_space else None,
            "rights": sorted(access.rights(caller, each)),
        }
        for each in collections
    ]
