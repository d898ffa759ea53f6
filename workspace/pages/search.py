"""The search of the whole service: tables, records, collections and pages of the administration."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from collections_app import access
from system.admin_site import dashboard
from system.errors import InvalidParameter
from tableapi.read import name_search
from workspace.pages.base import WorkspacePage

MAX_LENGTH = 200
MAX_ITEMS = 8


@dataclass(frozen=True)
class SearchItem:
    title: str
    url: str
    # What the item is, if its group does not tell.
    detail: str = ""


@dataclass(frozen=True)
class SearchGroup:
    title: str
    items: list[SearchItem]


class SearchPage(WorkspacePage):
    """`/find/?q=…`: a page, or JSON for the dialog that Ctrl K opens."""

    def get(self, request: HttpRequest) -> HttpResponse:
        text = request.GET.get("q", "").strip()
        if len(text) > MAX_LENGTH or "\x00" in text:
            raise InvalidParameter(f"q can contain at most {MAX_LENGTH} characters.", field="q")
        groups = [group for group in self._groups(text) if group.items]
        if "application/json" in request.headers.get("Accept", ""):
            return JsonResponse({"groups": [asdict(group) for group in groups]})
        return render(request, "workspace/search.html", {"groups": groups, "text": text})

    def _groups(self, text: str) -> Iterator[SearchGroup]:
        yield SearchGroup("Tables", list(self._tables(text.casefold()))[:MAX_ITEMS])
        if text:
            yield SearchGroup("Records", list(self._records(text)))
        collections = access.readable_collections(self.user()).filter(name__icontains=text).order_by("name")
        items = [
            SearchItem(collection.name, reverse("collection", args=[collection.pk]))
            for collection in collections[:MAX_ITEMS]
        ]
        yield SearchGroup("Collections", items)
        if self.user().is_staff:
            yield SearchGroup("Administration", list(self._admin_pages(text.casefold()))[:MAX_ITEMS])

    def _tables(self, text: str) -> Iterator[SearchItem]:
        view = self.context().view
        tables = [table for table in view.catalogue.tables.values() if view.can_read(table)]
        for table in sorted(tables, key=lambda table: (table.is_system, table.label.casefold())):
            if text in table.label.casefold() or text in table.name:
                yield SearchItem(table.label, f"{reverse('tables')}{table.name}/")

    def _records(self, text: str) -> Iterator[SearchItem]:
        for record in name_search.find_records(self.caller, text):
            url = f"{reverse('tables')}{record.table.name}/{record.sys_id}/"
            yield SearchItem(record.text, url, record.table.label)

    def _admin_pages(self, text: str) -> Iterator[SearchItem]:
        for group in dashboard.sidebar(self.request):
            for item in group["items"]:
                if text in str(item["title"]).casefold():
                    yield SearchItem(str(item["title"]), str(item["link"]), group["title"])
