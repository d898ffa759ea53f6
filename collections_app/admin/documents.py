"""Admin page of documents: how far each has come; loading again and deleting."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html

from collections_app import access
from collections_app.documents import counts, deletion
from collections_app.ingest import loading, worker
from collections_app.models import Collection, Document
from collections_app.models.documents import State
from system.admin_site.name_lists import MOST_NAMED, named
from system.admin_site.site import ReadOnlyAdmin
from system.errors import Conflict, NotFound, ServiceError
from system.records.history import name_of


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in counts.ORDER]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(newest__state=self.value()) if self.value() else queryset


class CollectionFilter(admin.SimpleListFilter):
    """Names only collections that this person may read; the others of many are chosen on the page of a collection."""

    title = "collection"
    parameter_name = "in"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        readable = access.readable(request.user).values_list("pk", "name")  # type: ignore[arg-type]
        found = list(readable[: MOST_NAMED + 1])
        if len(found) <= MOST_NAMED:
            return found
        self.title = f"collection, the first {MOST_NAMED}"
        chosen = readable.filter(pk=request.GET.get(self.parameter_name, ""))
        return list(dict.fromkeys([*found[:MOST_NAMED], *chosen]))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(collection=self.value()) if self.value() else queryset


def breakable(text: str) -> str:
    """Long words end at the edge of a phone."""
    return format_html('<span class="sb-json">{}</span>', text) if text else ""


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """Of collections that this person may read, as everywhere; never the text."""

    holds = "Documents are added at /collections/ or through the API. You see those of collections that you can search."

    list_display = ("called", "collection", "state", "chunks", "loaded_at", "error")
    list_filter: ClassVar[list[Any]] = [StateFilter, CollectionFilter]
    search_fields = ("doc_id", "newest__filename", "newest__sha256")
    ordering = ("-id",)
    list_per_page = 50
    actions = ("try_again", "load_anew")
    fields = (
        "own_id", "collection", "filename", "original", "state", "error", "warnings", "format", "size", "pages",
        "chunks", "sha256", "metadata", "loaded_by", "loaded_at", "generation",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        readable = access.readable(request.user).values("pk")  # type: ignore[arg-type]
        found: QuerySet[Document] = super().get_queryset(request)
        return found.filter(deleted_at__isnull=True, collection__in=readable).select_related("collection", "newest")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": self.fields})]  # it is no record with bookkeeping of its own

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        user: Any = request.user
        is_allowed = obj is None or "write" in access.rights(user, obj.collection)
        return is_allowed and bool(user.has_module_perms("collections_app"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        kept = sorted(each.name for each in self._unwritable(request, objs).values())
        protected = [f"Documents of {name}, where you are not allowed to delete" for name in kept]
        return named([document.page_title() for document in objs]), {"documents": len(objs)}, set(), named(protected)

    def _unwritable(self, request: HttpRequest, documents: Iterable[Document]) -> dict[str, Collection]:
        """The collections of these where this person may not do it; each is asked for once."""
        one_of_each = {document.collection_id: document for document in documents}
        return {
            collection_id: document.collection
            for collection_id, document in one_of_each.items()
            if not self.has_delete_permission(request, document)
        }

    def delete_model(self, request: HttpRequest, obj: Document) -> None:
        try:
            deletion.delete_document(obj.collection, obj.doc_id)
        except NotFound:
            pass  # somebody else was faster, to the same end

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        for document in queryset:
            self.delete_model(request, document)

    @admin.action(description="Retry failed documents")
    def try_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        self._load(request, queryset, _retry)

    @admin.action(description="Reprocess with current settings")
    def load_anew(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        user: Any = request.user
        self._load(request, queryset, lambda document: loading.reprocess(user, document.collection, document))

    def _load(self, request: HttpRequest, queryset: QuerySet[Document], load: Callable[[Document], Any]) -> None:
        unwritable = self._unwritable(request, queryset)
        refusals = [refusal for document in queryset for refusal in _refusals(document, unwritable, load)]
        for refusal in named(refusals):
            messages.error(request, refusal)
        done = len(queryset) - len(refusals)
        if done:
            messages.success(
                request,
                f"{done} document{'s' if done > 1 else ''} will be loaded again; the list says what came of it.",
            )

    @admin.display(description="Document", ordering="newest__filename")
    def called(self, document: Document) -> str:
        return document.page_title()

    @admin.display(description="Doc id", ordering="doc_id")
    def own_id(self, document: Document) -> str:
        return breakable(document.doc_id)

    @admin.display(description="File")
    def filename(self, document: Document) -> str:
        return breakable(document.newest.filename if document.newest else "")

    @admin.display(description="Original")
    def original(self, document: Document) -> str:
        address = reverse("collection-document-content", args=[document.collection_id, document.pk])
        return format_html('<a class="sb-link" href="{}" download>Download</a>', address)

    @admin.display(description="State", ordering="newest__state")
    def state(self, document: Document) -> str:
        return document.newest.state if document.newest else State.QUEUED.value

    @admin.display(description="Error")
    def error(self, document: Document) -> str:
        version = document.newest
        return version.error if version and version.state == State.FAILED else ""

    @admin.display(description="Warnings")
    def warnings(self, document: Document) -> str:
        return " ".join(map(str, document.newest.warnings)) if document.newest else ""

    @admin.display(description="Format")
    def format(self, document: Document) -> str:
        return document.newest.format if document.newest else ""

    @admin.display(description="Passages", ordering="newest__chunks_count")
    def chunks(self, document: Document) -> int:
        return document.newest.chunks_count if document.newest else 0

    @admin.display(description="Size")
    def size(self, document: Document) -> str:
        return filesizeformat(document.newest.size if document.newest else 0)

    @admin.display(description="Pages")
    def pages(self, document: Document) -> int | None:
        return document.newest.pages if document.newest else None

    @admin.display(description="SHA-256")
    def sha256(self, document: Document) -> str:
        return breakable(document.newest.sha256 if document.newest else "")

    @admin.display(description="Metadata")
    def metadata(self, document: Document) -> str:
        stored = document.newest.metadata if document.newest else {}
        return format_html('<pre class="sb-json">{}</pre>', json.dumps(stored, indent=2, ensure_ascii=False))

    @admin.display(description="Added by")
    def loaded_by(self, document: Document) -> str:
        return name_of(document.newest.created_by if document.newest else None) or "the system"

    @admin.display(description="Loaded", ordering="newest__created_at")
    def loaded_at(self, document: Document) -> str:
        at = document.newest.created_at if document.newest else document.created_at
        return f"{at:%Y-%m-%d %H:%M}"

    @admin.display(description="Generation")
    def generation(self, document: Document) -> int:
        return document.newest.generation if document.newest else 1


def _retry(document: Document) -> None:
    if document.newest is None or document.newest.state != State.FAILED:
        raise Conflict("it has not failed.")
    worker.retry(document)


def _refusals(document: Document, unwritable: dict[str, Collection], load: Callable[[Document], Any]) -> Iterator[str]:
    """Loads it, unless it is not to be."""
    if document.collection_id in unwritable:
        yield f"{document.page_title()}: you may not load into {document.collection}."
        return
    try:
        load(document)
    except ServiceError as error:
        yield f"{document.page_title()}: {error.message}"
