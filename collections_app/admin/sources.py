"""The list of sources in the administration, and their history. The pages of a collection change them."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from collections_app import access
from collections_app.admin.collections import VisibleHistoryAdmin
from collections_app.models import Source


@admin.register(Source)
class SourceAdmin(VisibleHistoryAdmin):
    """Sources of the collections that the user can change."""

    empty_list_text = "Web pages and folders that collections load. To add one, open the page of a collection."

    list_display = ("address", "kind", "collection", "state", "succeeded_at", "next_at", "error")
    list_filter = ("kind",)
    search_fields = ("address", "doc_id")
    list_per_page = 50
    fields = (
        "collection", "kind", "address", "doc_id", "interval_minutes", "state", "succeeded_at", "next_at", "error",
        "error_since",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Source]:
        managed = access.managed_collections(request.user).values("pk")  # type: ignore[arg-type]
        sources: QuerySet[Source] = super().get_queryset(request)
        return sources.filter(collection__in=managed).select_related("collection")
