"""The list of collections in the administration, and their history."""

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import path

from accounts.admin.roles import USAGE_FINDERS
from accounts.models import Role
from collections_app import access
from collections_app.models import Collection, Document, Version
from system.admin_site.name_lists import shorten_names
from system.admin_site.site import HistoryAdmin, ReadOnlyAdmin
from system.errors import NotFound


@USAGE_FINDERS.register
def collections_with_role(role: Role) -> Iterator[str]:
    """Lists the collections that use a role. They keep its id, because an empty list would grant access."""
    for role_kind in ("reader", "writer"):
        collections = Collection.objects.filter(deleted_at__isnull=True, **{f"{role_kind}_roles__contains": [role.pk]})
        yield from shorten_names(
            [
                f"Not deleted: the collection “{collection}”, whose {role_kind}s will no longer include this role"
                for collection in collections
            ]
        )


class VisibleHistoryAdmin(ReadOnlyAdmin, HistoryAdmin):
    """Shows the records in `get_queryset` with their history, and no other histories."""

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        self._require_visible(request, object_id)
        return super().history_view(request, object_id, extra_context)

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> Any:
        self._require_visible(request, object_id)
        return super().history_form_view(request, object_id, version_id, extra_context)

    def _require_visible(self, request: HttpRequest, object_id: str) -> None:
        """Raises NotFound unless the user can see the record; the history pages alone would show others too."""
        if self.get_object(request, object_id) is None:
            raise NotFound


@admin.register(Collection)
class CollectionAdmin(VisibleHistoryAdmin):
    """Collections that the user can read, with their history. The pages of a collection change it."""

    empty_list_text = (
        "A collection is a set of documents that are searched together. You see the collections that you can search."
    )

    list_display = ("name", "documents", "chunks", "text_configuration", "embedding_model", "sys_updated_at")
    search_fields = ("name",)
    list_per_page = 50

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        readable = access.readable_collections(request.user).values("pk")  # type: ignore[arg-type]
        documents = Document.objects.filter(collection=OuterRef("pk"), deleted_at__isnull=True)
        versions = Version.objects.filter(collection=OuterRef("pk"), is_searched=True)
        collections: QuerySet[Collection] = super().get_queryset(request)
        return (
            collections.filter(pk__in=readable)
            .select_related("space", "next_space")
            .annotate(
                documents_count=Coalesce(_aggregate_by_collection(documents, Count("pk")), 0),
                chunks_count=Coalesce(_aggregate_by_collection(versions, Sum("chunks_count")), 0),
            )
        )

    @admin.display(description="Documents")
    def documents(self, collection: Any) -> int:
        return int(collection.documents_count)

    @admin.display(description="Passages")
    def chunks(self, collection: Any) -> int:
        return int(collection.chunks_count)

    @admin.display(description="Embedding model")
    def embedding_model(self, collection: Collection) -> str:
        return f"{collection.space}{', being re-embedded' if collection.next_space else ''}"

    def get_urls(self) -> Any:
        view = self.admin_site.admin_view(self.change_view)
        return [path("<path:object_id>/reembed/", view), path("<path:object_id>/delete/", view), *super().get_urls()]

    def add_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return redirect("collections")

    def change_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        """Links of former versions lead to the page that replaced the form."""
        collection = self.get_object(request, object_id)
        if collection is None:
            raise NotFound
        may_manage = "manage" in access.rights(request.user, collection)  # type: ignore[arg-type]
        return redirect("collection-settings-page" if may_manage else "collection", collection.pk)


def _aggregate_by_collection(rows: QuerySet[Any], aggregate: Any) -> Subquery:
    return Subquery(rows.order_by().values("collection").annotate(total=aggregate).values("total"))
