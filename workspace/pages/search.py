"""The search of the whole service, and the suggestions of pickers and of the condition builder."""

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import reverse

from collections_app import access
from system.admin_site import dashboard
from system.errors import InvalidParameter
from tableapi.query.parameters import parse_text
from tableapi.read import name_search
from workspace.forms.options import find_options
from workspace.lists.fields import read_fields
from workspace.pages.base import WorkspacePage

MAX_LENGTH = 200
MAX_ITEMS = 8

# A `title` and a `url`, and as `detail` what the item is if its group does not tell.
SearchItem = dict[str, str]


class SearchPage(WorkspacePage):
    """`/find/?q=…`: a page, or JSON for the dialog that Ctrl K opens."""

    def get(self, request: HttpRequest) -> HttpResponse:
        text = search_text(request)
        words = text.casefold().split()
        found = {
            "Tables": self.tables(words)[:MAX_ITEMS],
            "Records": self.records(text),
            "Collections": self.collections(words),
            "Administration": self.admin_pages(words)[:MAX_ITEMS],
        }
        groups = [{"title": title, "items": items} for title, items in found.items() if items]
        if "application/json" in request.headers.get("Accept", ""):
            return JsonResponse({"groups": groups})
        return self.render("search", {"groups": groups, "text": text})

    def tables(self, words: list[str]) -> list[SearchItem]:
        tables = [table for table in self.readable_tables() if contains(f"{table.label} {table.name}", words)]
        return [item(table.label, reverse("table-list", args=[table.name])) for table in tables]

    def records(self, text: str) -> list[SearchItem]:
        return [
            item(found.text, reverse("record-page", args=[found.table.name, found.sys_id]), found.table.label)
            for found in name_search.find_records(self.caller, text)
        ]

    def collections(self, words: list[str]) -> list[SearchItem]:
        conditions = [Q(name__icontains=word) for word in words]
        found = access.readable_collections(self.user()).filter(*conditions).order_by("name")
        return [item(collection.name, reverse("collection", args=[collection.pk])) for collection in found[:MAX_ITEMS]]

    def admin_pages(self, words: list[str]) -> list[SearchItem]:
        groups = dashboard.sidebar(self.request) if self.user().is_staff else []
        return [
            item(str(link["title"]), str(link["link"]), group["title"])
            for group in groups
            for link in group["items"]
            if contains(str(link["title"]), words)
        ]


def contains(name: str, words: list[str]) -> bool:
    """Whether the name contains each of the words somewhere, also inside its own words.

    >>> contains("Service desk", ["esk", "serv"]), contains("Service desk", ["desk", "x"])
    (True, False)
    """
    return all(word in name.casefold() for word in words)


def item(title: str, url: str, detail: str = "") -> SearchItem:
    return {"title": title, "url": url, "detail": detail}


class OptionsView(WorkspacePage):
    """`/tables/{table}/options/?q=…`: up to 20 records by their display value, as JSON, for reference pickers."""

    def get(self, request: HttpRequest, table: str) -> JsonResponse:
        return JsonResponse({"options": self.read(table, find_options, search_text(request))})


class FieldsView(WorkspacePage):
    """`/tables/{table}/fields/?path=…`: for the condition builder, the columns of the table or, with a path, of the
    records it refers to."""

    def get(self, request: HttpRequest, table: str) -> JsonResponse:
        path = request.GET.get("path", "")
        return JsonResponse(self.read(table, read_fields, tuple(path.split(".")) if path else ()))


def search_text(request: HttpRequest) -> str:
    text = parse_text(request.GET, "q").strip()
    if len(text) > MAX_LENGTH:
        raise InvalidParameter(f"q can contain at most {MAX_LENGTH} characters.", field="q")
    return text
