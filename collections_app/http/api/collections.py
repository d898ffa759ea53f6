"""Collection endpoints: list, create, settings, delete, re-embed, search."""

import unicodedata
from collections.abc import Sequence
from typing import Any

import django_filters
from django.db import IntegrityError, transaction
from django.db.models import Q
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from collections_app import access
from collections_app.documents import deletion
from collections_app.http import parameters, responses, search_requests, serializers
from collections_app.http.api import base
from collections_app.http.api.serializers import CollectionDetailSerializer, CollectionSettingsSerializer, role_names
from collections_app.models import Collection
from collections_app.vectors import model_choice, reembedding
from system.errors import AccessDenied, BadRequest, Conflict, NotFound
from system.openapi import describe


class CollectionFilters(django_filters.FilterSet):  # type: ignore[misc]  # has no types
    collection_name = django_filters.CharFilter(method="filter_by_name")
    ordering = django_filters.OrderingFilter(
        fields={"name": "collection_name", "sys_created_at": "created_at", "sys_updated_at": "updated_at"}
    )

    def filter_by_name(self, collections: Any, name: str, value: str) -> Any:
        name_part = unicodedata.normalize("NFC", value)
        # Names have collation C, which ignores case for ASCII letters only; other letters match as written.
        return collections.filter(Q(name__icontains=name_part) | Q(name__contains=name_part))


class CollectionList(base.ManagementView, GenericAPIView[Collection]):
    serializer_class = CollectionDetailSerializer
    pagination_class = base.OffsetPagination
    filter_backends = (base.StrictFilterBackend,)
    filterset_class = CollectionFilters

    queryset = Collection.objects.none()  # for the OpenAPI document; `get_queryset` depends on the caller

    def get_queryset(self) -> Any:
        return access.readable_collections(self.caller())

    @describe(
        "collections_list", "List collections with their settings", {200: CollectionDetailSerializer(many=True)},
        NotFound, BadRequest, parameters=serializers.PAGE_HEADERS, filters=True,
    )  # fmt: skip
    def get(self, request: Request) -> Response:
        """Returns the collections that you can read."""
        page: Any = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(managed_collection_bodies(self.caller(), page))

    @describe(
        "collections_make", "Create a collection", {201: CollectionDetailSerializer}, NotFound, AccessDenied, Conflict,
        parameters=[base.ETAG_HEADER], request=CollectionSettingsSerializer,
    )  # fmt: skip
    def post(self, request: Request) -> Response:
        # Checked before the body, whose errors would reveal which roles exist.
        if not access.may_create_collections(self.caller()):
            raise AccessDenied("You are not allowed to create collections.")
        settings = CollectionSettingsSerializer(data=parameters.json_body(request))
        settings.is_valid(raise_exception=True)
        collection = access.create_collection(self.caller(), Collection(**settings.validated_data))
        return settings_response(self.caller(), collection, status=201)


class CollectionDetail(base.ManagementView):
    @describe(
        "collections_read", "Read a collection", {200: CollectionDetailSerializer}, NotFound,
        parameters=[base.ETAG_HEADER],
    )  # fmt: skip
    def get(self, request: Request, sys_id: str) -> Response:
        return settings_response(self.caller(), self.open_collection(sys_id, "read"))

    @describe(
        "collections_change", "Update a collection", {200: CollectionDetailSerializer}, *base.CHANGE_ERRORS,
        parameters=[base.ETAG_HEADER, base.IF_MATCH_HEADER], request=CollectionSettingsSerializer(partial=True),
    )  # fmt: skip
    def patch(self, request: Request, sys_id: str) -> Response:
        self.open_collection(sys_id, "manage")
        try:
            # The lock prevents the loss of concurrent changes to other settings.
            with transaction.atomic():
                collection = Collection.lock(sys_id)
                if collection is None:
                    raise NotFound("The collection does not exist.")
                base.refuse_stale_etag(request, base.compute_etag(collection.sys_version))
                settings = CollectionSettingsSerializer(collection, data=parameters.json_body(request), partial=True)
                settings.is_valid(raise_exception=True)
                settings.save()
        except IntegrityError:
            raise Conflict("This name is already taken.", code="name_taken", field="collection_name") from None
        return settings_response(self.caller(), collection)

    @describe(
        "collections_delete", "Delete a collection and its documents", {200: serializers.DeletedCollectionSerializer},
        *base.DELETE_ERRORS, parameters=[base.IF_MATCH_HEADER],
    )  # fmt: skip
    def delete(self, request: Request, sys_id: str) -> Response:
        collection = self.open_collection(sys_id, "manage")
        deleted_counts = deletion.delete_collection(
            collection, lambda row: base.refuse_stale_etag(request, base.compute_etag(row.sys_version))
        )
        return Response(responses.deleted_collection_body(collection, *deleted_counts))


class ReembedCollection(base.ManagementView):
    """Replaces the vectors with those of the configured model. Searches use the old vectors until all are replaced."""

    @describe(
        "collections_reembed", "Re-embed a collection", {202: CollectionDetailSerializer}, NotFound, AccessDenied,
        parameters=[base.ETAG_HEADER], request=None,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        collection = self.open_collection(sys_id, "manage")
        reembedding.start_reembedding(collection, model_choice.target_space(collection))
        return settings_response(self.caller(), self.open_collection(sys_id, "read"), status=202)


class SearchCollection(base.ManagementView):
    reads_by_post = True

    @describe(
        "collections_search", "Search a collection", {200: serializers.PassageSerializer(many=True)}, NotFound,
        parameters=[serializers.CollectionSearch.as_post_query_parameters(), *serializers.SEARCH_HEADERS],
        request=serializers.CollectionSearch,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        searches = search_requests.read_searches(
            parameters.parse_request(request, serializers.CollectionSearch.names())
        )
        return search_requests.respond([self.open_collection(sys_id, "read")], searches)


def settings_response(caller: User, collection: Collection, status: int = 200) -> Response:
    headers = {"ETag": base.compute_etag(collection.sys_version)}
    return Response(managed_collection_bodies(caller, [collection])[0], status=status, headers=headers)


def managed_collection_bodies(caller: User, collections: Sequence[Collection]) -> list[dict[str, Any]]:
    """Returns the collections with their settings, counts and the caller's rights."""
    roles = role_names(collections)
    return [
        {
            "sys_id": collection.pk,
            **CollectionSettingsSerializer(collection, context={"roles": roles}).data,
            **body,
            "next_embedding_model": collection.next_space.model if collection.next_space else None,
            "rights": sorted(access.rights(caller, collection)),
        }
        for collection, body in zip(collections, responses.collection_bodies(collections), strict=True)
    ]
