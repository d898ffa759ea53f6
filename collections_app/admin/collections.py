"""Admin pages of collections: what they are called, how they are cut and searched, and who may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.template.response import TemplateResponse
from django.urls import path, reverse

from accounts.admin.roles import register_usages
from accounts.models import Role
from collections_app import access, embed
from collections_app.admin.collection_form import TAKEN, CollectionForm
from collections_app.documents import counts, deletion
from collections_app.models import Collection, Document, Version
from collections_app.vectors import reembedding as reembed
from system.admin_site.name_lists import named
from system.admin_site.site import TrackedAdmin
from system.errors import Conflict, NotFound, ServiceError

GIVEN_AWAY = (
    "You can no longer change this collection because you are not one of its writers. "
    "An administrator can restore your access."
)


@register_usages
def collections_of(role: Role) -> Iterator[str]:
    """Its id stays in them, so that nobody gets in who could not before."""
    for what in ("readers", "writers"):
        having = {f"{what.removesuffix('s')}_roles__contains": [role.pk]}
        found = Collection.objects.filter(deleted_at__isnull=True, **having)
        names = [f"Not deleted: the collection “{each}”, which loses it from its {what}" for each in found]
        yield from named(names)


@admin.register(Collection)
class CollectionAdmin(TrackedAdmin):
    """Only of collections that this person may read; changed only by those who manage them."""

    holds = (
        "A collection holds documents that are searched together. The list shows the collections that you can search."
    )

    form = CollectionForm
    list_display = ("name", "documents", "chunks", "text_configuration", "embedding_model", "sys_updated_at")
    search_fields = ("name",)
    list_per_page = 50
    readonly_fields = ("embedding_model", "counted", "reembedding")
    fieldsets = (
        (None, {"fields": ("name", "counted", "reader_roles", "writer_roles")}),
        (
            "Search settings",
            {
                "fields": (
                    "text_configuration",
                    "chunk_size",
                    "chunk_overlap",
                    "alpha",
                    "embedding_model",
                    "reembedding",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Collection]:
        readable = access.readable(request.user).values("pk")  # type: ignore[arg-type]
        documents = Document.objects.filter(collection=OuterRef("pk"), deleted_at__isnull=True)
        versions = Version.objects.filter(collection=OuterRef("pk"), is_searched=True)
        found: QuerySet[Collection] = super().get_queryset(request)
        return (
            found.filter(pk__in=readable)
            .select_related("space", "next_space")
            .annotate(
                documents_count=Coalesce(_of_each(documents, Count("pk")), 0),
                chunks_count=Coalesce(_of_each(versions, Sum("chunks_count")), 0),
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
        if collection.is_new:
            return "the configured model"
        if collection.next_space is None:
            return str(collection.space)
        trouble = f" {collection.reembed_error}" if collection.reembed_error else ""
        return f"{collection.space}, being filled for {collection.next_space}.{trouble}"

    @admin.display(description="Documents")
    def counted(self, collection: Collection) -> str:
        if collection.is_new:
            return "none yet"
        found = counts.of([collection.pk])[collection.pk]
        states = ", ".join(f"{count} {state}" for state, count in found.states)
        return (
            f"{found.documents} ({states}), {found.chunks} passage{pluralize(found.chunks)}" if states else "none yet"
        )

    @admin.display(description="Re-embedding")
    def reembedding(self, collection: Collection) -> str:
        if collection.next_space is None:
            return "not running"
        filled, chunks = reembed.progress(collection)
        return f"Vectors for {collection.next_space}: {filled} of {chunks} made."

    def render_change_form(self, request: HttpRequest, context: Any, *positional: Any, **named: Any) -> Any:
        found = context.get("original")
        may_embed = found is not None and not (embed.is_default(found.space) and found.next_space is None)
        return super().render_change_form(request, context | {"may_embed": may_embed}, *positional, **named)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and self._manages(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and self._manages(request, obj)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        self._refuse_unreadable(request, object_id)
        response: HttpResponse = super().history_view(request, object_id, extra_context)
        return response

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> HttpResponse:
        self._refuse_unreadable(request, object_id)
        return super().history_form_view(request, object_id, version_id, extra_context)

    def _refuse_unreadable(self, request: HttpRequest, object_id: str) -> None:
        """The history looks past the list of the page, since it is of records that are gone too."""
        if self.get_object(request, object_id) is None:
            raise NotFound

    def _manages(self, request: HttpRequest, obj: Any) -> bool:
        user: Any = request.user
        return obj is None or "manage" in access.rights(user, obj)

    def save_model(self, request: HttpRequest, obj: Collection, form: Any, change: bool) -> None:
        if not change:
            obj.space = embed.default_space()
        changed = {*form.changed_data}
        try:
            with transaction.atomic():
                obj.save(update_fields=sorted(changed) if change else None)
        except IntegrityError:
            raise Conflict(TAKEN) from None
        # What the page knows of its rights is of before.
        if "manage" not in access.rights(request.user, Collection.objects.get(pk=obj.pk)):  # type: ignore[arg-type]
            messages.warning(request, GIVEN_AWAY)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        kept = [f"{each}, which others manage" for each in objs if not self.has_delete_permission(request, each)]
        found = counts.of([each.pk for each in objs])
        deleted = []
        for each in objs:
            count = found[each.pk].documents
            deleted.append(f"{each}, with {count} document{pluralize(count)}")
        return named(deleted), {"collections": len(objs)}, set(), named(kept)

    def delete_model(self, request: HttpRequest, obj: Collection) -> None:
        try:
            deletion.delete_collection(obj)
        except NotFound:
            pass  # somebody else was faster, to the same end

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        for collection in queryset:
            self.delete_model(request, collection)

    def get_urls(self) -> Any:
        again = path(
            "<path:object_id>/reembed/", self.admin_site.admin_view(self.reembed_view), name="reembed-collection"
        )
        return [again, *super().get_urls()]

    def reembed_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks first; only what is posted does it."""
        collection = self.get_object(request, object_id)
        if collection is None:
            raise NotFound
        if not self.has_change_permission(request, collection):
            raise PermissionDenied
        change = reverse("admin:collections_app_collection_change", args=[collection.pk])
        if request.method == "POST":
            self._reembed(request, collection)
            return redirect(change)
        target = embed.default_space()
        seen = {
            **self.admin_site.each_context(request),
            "title": f"Re-embed “{collection}”",
            "collection": collection,
            "target": target,
            # To one that is being filled it would be a way back.
            "is_there": target == collection.space and collection.next_space is None,
            "counts": counts.of([collection.pk])[collection.pk],
            "back": change,
        }
        return TemplateResponse(request, "admin/collections_app/collection/reembed.html", seen)

    def _reembed(self, request: HttpRequest, collection: Collection) -> None:
        try:
            reembed.start(collection, embed.default_space())
        except ServiceError as error:
            messages.error(request, error.message)
        else:
            messages.success(request, "Re-embedding started. Searches use the current vectors until it is complete.")


def _of_each(found: QuerySet[Any], figure: Any) -> Subquery:
    return Subquery(found.order_by().values("collection").annotate(figure=figure).values("figure"))
