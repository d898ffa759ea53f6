"""Admin pages of collections: settings, permissions and re-embedding."""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from django import forms
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
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.admin.roles import USAGE_FINDERS, RoleMultipleChoiceField
from accounts.models import Role
from collections_app import access, embed
from collections_app.documents import counts, deletion
from collections_app.http.api.serializers import check_language
from collections_app.models import Collection, Document, Version
from collections_app.models.collections import InvalidName, check_visible_characters, normalize_name
from collections_app.vectors import reembedding as reembed
from system.admin_site.name_lists import shorten_names
from system.admin_site.site import HistoryAdmin
from system.errors import Conflict, NotFound, ServiceError

# PostgreSQL's text search configurations. `check_language` verifies that the server has the selected one.
TEXT_CONFIGURATIONS = (
    "simple arabic armenian basque catalan danish dutch english estonian finnish french german greek hindi hungarian "
    "indonesian irish italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil "
    "turkish yiddish"
)
LANGUAGE_HELP = "Language for keyword search in new and reprocessed documents. Leave empty to detect it per document."
NAME_TAKEN = "A collection with this name already exists."
LOST_ACCESS_WARNING = (
    "You can no longer change this collection because you are not one of its writers. "
    "An administrator can restore your access."
)
SEARCH_SETTINGS = ("text_configuration", "chunk_size", "chunk_overlap", "alpha", "embedding_model", "reembedding")
_role_field = partial(RoleMultipleChoiceField, queryset=Role.objects.all(), required=False)


class CollectionForm(forms.ModelForm):  # type: ignore[type-arg]
    reader_roles = _role_field(
        label="Readers",
        help_text="Roles that can search this collection, in addition to writers. Leave empty for writers only.",
    )
    writer_roles = _role_field(
        label="Writers", help_text="Roles that can add and delete documents. Leave empty for collection_admin only."
    )

    class Meta:
        model = Collection
        fields = (
            "name", "text_configuration", "chunk_size", "chunk_overlap", "alpha", "reader_roles", "writer_roles",
        )  # fmt: skip
        labels = {"alpha": "Keyword weight"}
        help_texts = {
            "text_configuration": LANGUAGE_HELP,
            "chunk_size": "Maximum number of characters per passage, for new and reprocessed documents.",
            "chunk_overlap": "Number of characters repeated from the previous passage. At most half of the chunk size.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "text_configuration" in self.fields:
            configurations = dict.fromkeys((*TEXT_CONFIGURATIONS.split(), self.instance.text_configuration))
            choices = [("", "Detect automatically"), *((name, name) for name in configurations if name)]
            self.fields["text_configuration"].widget = UnfoldAdminSelectWidget(choices=choices)

    def clean_name(self) -> str:
        try:
            name = normalize_name(self.cleaned_data["name"])
            if name != self.initial.get("name"):
                check_visible_characters(name)
        except InvalidName as error:
            raise forms.ValidationError(error.message) from None
        own_id = "" if self.instance.is_new else self.instance.pk  # an unsaved collection has no key yet
        if Collection.objects.filter(name=name, deleted_at__isnull=True).exclude(pk=own_id).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean_text_configuration(self) -> str:
        return check_language(self.cleaned_data["text_configuration"])


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


@admin.register(Collection)
class CollectionAdmin(HistoryAdmin):
    """Collections that the user can read. Only their managers can change them."""

    empty_list_text = (
        "A collection is a set of documents that are searched together. You see the collections that you can search."
    )

    form = CollectionForm
    list_display = ("name", "documents", "chunks", "text_configuration", "embedding_model", "sys_updated_at")
    search_fields = ("name",)
    list_per_page = 50
    readonly_fields = ("embedding_model", "document_counts", "reembedding")
    fieldsets = (
        (None, {"fields": ("name", "document_counts", "reader_roles", "writer_roles")}),
        ("Search settings", {"fields": SEARCH_SETTINGS}),
    )

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
        if collection.is_new:
            return "the configured model"
        if collection.next_space is None:
            return str(collection.space)
        error = f" {collection.reembed_error}" if collection.reembed_error else ""
        return f"{collection.space}, being re-embedded with {collection.next_space}.{error}"

    @admin.display(description="Documents")
    def document_counts(self, collection: Collection) -> str:
        if collection.is_new:
            return "none yet"
        totals = counts.count_by_collection([collection.pk])[collection.pk]
        states = ", ".join(f"{count} {state}" for state, count in totals.state_counts)
        passages = f"{totals.chunk_count} passage{pluralize(totals.chunk_count)}"
        return f"{totals.document_count} ({states}), {passages}" if states else "none yet"

    @admin.display(description="Re-embedding")
    def reembedding(self, collection: Collection) -> str:
        if collection.next_space is None:
            return "not running"
        stored_count, chunk_count = reembed.reembedding_progress(collection)
        return f"Vectors stored for {collection.next_space}: {stored_count} of {chunk_count}."

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        collection = context.get("original")
        may_reembed = collection is not None and not (
            embed.is_default(collection.space) and collection.next_space is None
        )
        return super().render_change_form(request, context | {"may_reembed": may_reembed}, *args, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_change_permission(request, obj)) and self._may_manage(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(super().has_delete_permission(request, obj)) and self._may_manage(request, obj)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        self._require_readable(request, object_id)
        return super().history_view(request, object_id, extra_context)

    def history_form_view(
        self, request: HttpRequest, object_id: str, version_id: str, extra_context: Any = None
    ) -> Any:
        self._require_readable(request, object_id)
        return super().history_form_view(request, object_id, version_id, extra_context)

    def _require_readable(self, request: HttpRequest, object_id: str) -> None:
        """Raises NotFound unless the user can read the collection; the history pages alone would show others too."""
        if self.get_object(request, object_id) is None:
            raise NotFound

    def _may_manage(self, request: HttpRequest, obj: Any) -> bool:
        user: Any = request.user
        return obj is None or "manage" in access.rights(user, obj)

    def save_model(self, request: HttpRequest, obj: Collection, form: Any, change: bool) -> None:
        if not change:
            obj.space = embed.default_space()
        try:
            with transaction.atomic():
                obj.save(update_fields=form.changed_data if change else None)
        except IntegrityError:
            raise Conflict(NAME_TAKEN) from None
        # Reload the collection, because the change may affect the user's own rights.
        if "manage" not in access.rights(request.user, Collection.objects.get(pk=obj.pk)):  # type: ignore[arg-type]
            messages.warning(request, LOST_ACCESS_WARNING)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        protected = [
            f"{obj}, which you are not allowed to delete"
            for obj in objs
            if not self.has_delete_permission(request, obj)
        ]
        counts_by_id = counts.count_by_collection([obj.pk for obj in objs])
        to_delete = []
        for obj in objs:
            count = counts_by_id[obj.pk].document_count
            to_delete.append(f"{obj}, with {count} document{pluralize(count)}")
        return shorten_names(to_delete), {"collections": len(objs)}, set(), shorten_names(protected)

    def delete_model(self, request: HttpRequest, obj: Collection) -> None:
        with suppress(NotFound):  # deleted by another request
            deletion.delete_collection(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Collection]) -> None:
        for collection in queryset:
            self.delete_model(request, collection)

    def get_urls(self) -> Any:
        reembed_path = path(
            "<path:object_id>/reembed/", self.admin_site.admin_view(self.reembed_view), name="reembed-collection"
        )
        return [reembed_path, *super().get_urls()]

    def reembed_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Shows a confirmation page; a POST starts the re-embedding."""
        collection = self.get_object(request, object_id)
        if collection is None:
            raise NotFound
        if not self.has_change_permission(request, collection):
            raise PermissionDenied
        change_url = reverse("admin:collections_app_collection_change", args=[collection.pk])
        if request.method == "POST":
            try:
                reembed.start_reembedding(collection, embed.default_space())
            except ServiceError as error:
                messages.error(request, error.message)
            else:
                started_text = "Re-embedding started. Searches use the current vectors until it is complete."
                messages.success(request, started_text if collection.next_space_id else "Re-embedding canceled.")
            return redirect(change_url)
        target_space = embed.default_space()
        context = {
            **self.admin_site.each_context(request),
            "title": f"Re-embed “{collection}”",
            "collection": collection,
            "target_space": target_space,
            # During a re-embedding, confirming the current space cancels it.
            "uses_target_space": target_space == collection.space and collection.next_space is None,
            "counts": counts.count_by_collection([collection.pk])[collection.pk],
            "back_url": change_url,
        }
        return TemplateResponse(request, "admin/collections_app/collection/reembed.html", context)


def _aggregate_by_collection(rows: QuerySet[Any], aggregate: Any) -> Subquery:
    return Subquery(rows.order_by().values("collection").annotate(total=aggregate).values("total"))
