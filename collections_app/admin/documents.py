"""Admin pages of documents: their state and details. The collection pages change them."""

import json
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.html import format_html

from collections_app import access
from collections_app.documents import counts
from collections_app.models import Document
from collections_app.models.documents import State
from system.admin_site.name_lists import MOST_NAMED
from system.admin_site.site import ReadOnlyAdmin
from system.records.history import name_of


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in counts.ORDER]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(newest__state=self.value()) if self.value() else queryset


class CollectionFilter(admin.SimpleListFilter):
    """Offers only collections that the user can read, and the first of many. A collection's page links here."""

    title = "collection"
    parameter_name = "in"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        readable = access.readable(request.user).values_list("pk", "name")  # type: ignore[arg-type]
        choices = list(readable[: MOST_NAMED + 1])
        if len(choices) <= MOST_NAMED:
            return choices
        self.title = f"collection, the first {MOST_NAMED}"
        selected = readable.filter(pk=request.GET.get(self.parameter_name, ""))
        return list(dict.fromkeys([*choices[:MOST_NAMED], *selected]))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(collection=self.value()) if self.value() else queryset


def breakable(text: str) -> str:
    """Lets long words break, for narrow screens."""
    return format_html('<span class="sb-json">{}</span>', text) if text else ""


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """Documents of collections that the user can read, without their text."""

    holds = "Documents of the collections that you can search. Add and change them on the page of their collection."

    list_display = ("called", "collection", "state", "chunks", "loaded_at", "error")
    list_filter = [StateFilter, CollectionFilter]
    search_fields = ("doc_id", "newest__filename", "newest__sha256")
    ordering = ("-id",)
    list_per_page = 50
    fields = (
        "own_id", "collection", "page", "filename", "original", "state", "error", "warnings", "format", "size", "pages",
        "chunks", "sha256", "metadata", "loaded_by", "loaded_at", "generation",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        readable = access.readable(request.user).values("pk")  # type: ignore[arg-type]
        documents: QuerySet[Document] = super().get_queryset(request)
        return documents.filter(deleted_at__isnull=True, collection__in=readable).select_related("collection", "newest")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return [(None, {"fields": self.fields})]  # it has no `sys_*` fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields

    @admin.display(description="Document", ordering="newest__filename")
    def called(self, document: Document) -> str:
        return document.page_title()

    @admin.display(description="Doc id", ordering="doc_id")
    def own_id(self, document: Document) -> str:
        return breakable(document.doc_id)

    @admin.display(description="File")
    def filename(self, document: Document) -> str:
        return breakable(document.newest.filename if document.newest else "")

    @admin.display(description="Changes")
    def page(self, document: Document) -> str:
        address = reverse("collection", args=[document.collection_id])
        name = urlencode({"name": document.page_title()})
        return format_html(
            '<a class="sb-link" href="{}?{}#documents-title">Change in the collection</a>', address, name
        )

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
