"""Source endpoints: the web pages and folders of a collection. Only its managers learn that they exist."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app.http import parameters
from collections_app.http.api import base
from collections_app.models import Source
from collections_app.models.sources import MAX_INTERVAL_MINUTES, MIN_INTERVAL_MINUTES
from collections_app.sources import creation, refresh
from system.errors import AccessDenied, Conflict, NotFound
from system.openapi import describe
from system.outbound.urls import MAX_URL_LENGTH


class NewSourceSerializer(base.StrictSerializer):
    """A web page or folder to load from."""

    kind = serializers.ChoiceField(choices=Source.Kind.choices)
    address = serializers.CharField(
        max_length=MAX_URL_LENGTH, help_text="The URL of a page, or the path of a folder on the server."
    )
    doc_id = base.DocIdField(
        required=False,
        help_text="The document that has the text of a page. Default: its address without scheme and query.",
    )
    interval_minutes = serializers.IntegerField(
        required=False,
        min_value=MIN_INTERVAL_MINUTES,
        max_value=MAX_INTERVAL_MINUTES,
        help_text="Minutes between two refreshes. Default: 1440, a day.",
    )


class ProblemSerializer(serializers.Serializer[Any]):
    path = serializers.CharField()
    message = serializers.CharField()


class SourceSerializer(serializers.Serializer[Any]):
    """A web page or folder, and the state of its refreshes."""

    sys_id = serializers.CharField(source="pk")
    kind = serializers.ChoiceField(choices=Source.Kind.choices)
    address = serializers.CharField()
    doc_id = serializers.CharField(allow_null=True)
    interval_minutes = serializers.IntegerField()
    state = serializers.ChoiceField(choices=("waiting", "ok", "failing"))
    last_refresh = base.time_field(source="checked_at", allow_null=True)
    last_success = base.time_field(source="succeeded_at", allow_null=True)
    next_refresh = base.time_field(source="next_at")
    error = serializers.CharField(allow_null=True)
    error_since = base.time_field(allow_null=True)
    problems = ProblemSerializer(many=True, help_text="Files that were not loaded, at most 100.")

    def to_representation(self, instance: Source) -> dict[str, Any]:
        return {name: None if value == "" else value for name, value in super().to_representation(instance).items()}


class DeletedSourceSerializer(serializers.Serializer[Any]):
    status = serializers.CharField(default="OK")
    sys_id = serializers.CharField()
    deleted = serializers.BooleanField()


class SourceList(base.ManagementView):
    @describe("sources_list", "List sources", {200: SourceSerializer(many=True)}, NotFound, AccessDenied)
    def get(self, request: Request, sys_id: str) -> Response:
        """Returns all web pages and folders that the collection loads documents from."""
        return Response(SourceSerializer(self.open_collection(sys_id, "manage").sources.all(), many=True).data)

    @describe(
        "sources_add", "Add a source", {201: SourceSerializer}, NotFound, AccessDenied, Conflict,
        request=NewSourceSerializer,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        """The worker loads the source soon afterwards, then once per interval. A document with the same ID is
        replaced, as by a load with on_duplicate=replace."""
        collection = self.open_collection(sys_id, "manage")
        serializer = NewSourceSerializer(data=parameters.json_body(request))
        serializer.is_valid(raise_exception=True)
        source = creation.create_source(collection, Source(**serializer.validated_data))
        return Response(SourceSerializer(source).data, status=201)


class SourceView(base.ManagementView):
    def open_source(self, sys_id: str, source: str) -> Source:
        return creation.find_source(self.open_collection(sys_id, "manage"), source)


class SourceDetail(SourceView):
    @describe("sources_read", "Read a source", {200: SourceSerializer}, NotFound, AccessDenied)
    def get(self, request: Request, sys_id: str, source: str) -> Response:
        return Response(SourceSerializer(self.open_source(sys_id, source)).data)

    @describe("sources_delete", "Delete a source", {200: DeletedSourceSerializer}, NotFound, AccessDenied)
    def delete(self, request: Request, sys_id: str, source: str) -> Response:
        """The documents that it loaded are kept."""
        self.open_source(sys_id, source).delete()
        return Response({"status": "OK", "sys_id": source, "deleted": True})


class RefreshSource(SourceView):
    @describe(
        "sources_refresh", "Refresh a source now", {202: SourceSerializer}, NotFound, AccessDenied, request=None
    )  # fmt: skip
    def post(self, request: Request, sys_id: str, source: str) -> Response:
        opened_source = self.open_source(sys_id, source)
        refresh.request_refresh(opened_source)
        return Response(SourceSerializer(opened_source).data, status=202)
