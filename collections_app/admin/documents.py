"""Read-only admin pages of documents. Users change documents on the collection pages."""

import json
from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import formats
from django.utils.html import format_html
from django.utils.timezone import localtime

from collections_app import access
from collections_app.documents import counts
from collections_app.models import Document, Version
from collections_app.models.documents import VersionState
from system.admin_site.name_lists import MAX_NAMES_SHOWN
from system.admin_site.site import ReadOnlyAdmin
from system.records.history import login_of


class DocumentStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in counts.STATE_ORDER]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(newest__state=self.value()) if self.value() else queryset


class CollectionFilter(admin.SimpleListFilter):
    """Offers the first collections that the user can read, and the selected one, to which a collection's page links."""

    title = "collection"
    parameter_name = "in"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        readable = access.readable_collections(request.user).values_list("pk", "name")  # type: ignore[arg-type]
        choices = list(readable[: MAX_NAMES_SHOWN + 1])
        if len(choices) <= MAX_NAMES_SHOWN:
            return choices
        self.title = f"collection (first {MAX_NAMES_SHOWN})"
        selected_collection = readable.filter(pk=request.GET.get(self.parameter_name, ""))
        return list(dict.fromkeys([*choices[:MAX_NAMES_SHOWN], *selected_collection]))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> QuerySet[Document]:
        return queryset.filter(collection=self.value()) if self.value() else queryset


def breakable_html(text: str) -> str:
    """Escapes the text and lets long words wrap on narrow screens."""
    return format_html('<span class="sb-json">{}</span>', text) if text else ""


def newest_version_column(description: str, read: Callable[[Version], Any], **options: Any) -> Any:
    def column(_: Any, document: Document) -> Any:
        return read(document.displayed_version())

    return admin.display(description=description, **options)(column)


@admin.register(Document)
class DocumentAdmin(ReadOnlyAdmin):
    """Documents in the collections that the user can read. Their text is not shown."""

    empty_list_text = "Documents of the collections that you can search. To add or change one, open its collection."

    list_display = ("display_title", "collection", "state", "chunks", "loaded_at", "error")
    list_filter = [DocumentStateFilter, CollectionFilter]
    search_fields = ("doc_id", "newest__filename", "newest__sha256")
    ordering = ("-id",)
    list_per_page = 50
    fields = (
        "display_doc_id", "collection", "edit_link", "filename", "download_link", "state", "error", "warnings",
        "format", "size", "pages", "chunks", "sha256", "metadata", "loaded_by", "loaded_at", "generation",
    )  # fmt: skip

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        readable = access.readable_collections(request.user).values("pk")  # type: ignore[arg-type]
        documents: QuerySet[Document] = super().get_queryset(request)
        return documents.filter(deleted_at__isnull=True, collection__in=readable).select_related("collection", "newest")

    @admin.display(description="Document", ordering="newest__filename")
    def display_title(self, document: Document) -> str:
        return document.page_title()

    @admin.display(description="Document ID", ordering="doc_id")
    def display_doc_id(self, document: Document) -> str:
        return breakable_html(document.doc_id)

    @admin.display(description="Actions")
    def edit_link(self, document: Document) -> str:
        url = reverse("document-page", args=[document.collection_id, document.pk])
        return format_html('<a class="sb-link" href="{}">Open in the collection</a>', url)

    @admin.display(description="Original")
    def download_link(self, document: Document) -> str:
        url = reverse("collection-document-content", args=[document.collection_id, document.pk])
        return format_html('<a class="sb-link" href="{}" download>Download</a>', url)

    @admin.display(description="Metadata")
    def metadata(self, document: Document) -> str:
        values = document.displayed_version().metadata
        return format_html('<pre class="sb-json">{}</pre>', json.dumps(values, indent=2, ensure_ascii=False))

    error = newest_version_column(
        "Error", lambda version: version.error if version.state == VersionState.FAILED else ""
    )
    loaded_at = newest_version_column(
        "Added", lambda version: formats.localize(localtime(version.created_at)), ordering="newest__created_at"
    )
    filename = newest_version_column("File", lambda version: breakable_html(version.filename))
    state = newest_version_column("State", lambda version: version.state, ordering="newest__state")
    warnings = newest_version_column("Warnings", lambda version: " ".join(map(str, version.warnings)))
    format = newest_version_column("Format", lambda version: version.format)
    chunks = newest_version_column("Passages", lambda version: version.chunks_count, ordering="newest__chunks_count")
    size = newest_version_column("Size", lambda version: filesizeformat(version.size))
    pages = newest_version_column("Pages", lambda version: version.pages)
    sha256 = newest_version_column("SHA-256", lambda version: breakable_html(version.sha256))
    loaded_by = newest_version_column("Added by", lambda version: login_of(version.created_by) or "the system")
    generation = newest_version_column("Generation", lambda version: version.generation)
