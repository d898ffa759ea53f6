"""The columns that a person chooses for the list of a table, and their widths."""

from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from system.errors import InvalidInput
from tableapi.catalogue.definitions import Table
from tableapi.changes.logged_values import table_key
from tableapi.read.context import ReadContext
from workspace.lists import columns, list_contents
from workspace.lists.list_state import ListState, parse_state
from workspace.models import ListLayout
from workspace.pages.base import WorkspacePage

MAX_COLUMNS = 50
MIN_WIDTH, MAX_WIDTH = 48, 1_200


class ColumnsPage(WorkspacePage):
    """`/tables/{table}/columns/`. Each button posts the whole form, so that it works without scripts."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        state = parse_state(table, request.GET)
        context, opened = self.open_table(table)
        paths = [column.path for column in list_contents.columns_of(context, opened, state)]
        return self.show(context, opened, state, paths)

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        context, opened = self.open_table(table)
        state = parse_state(table, QueryDict(request.POST.get("list-state", "")))
        paths = columns.visible_paths(context.view, opened, dict.fromkeys(request.POST.getlist("path")))
        step, _, subject = request.POST.get("step", "save").partition(":")
        if step == "reset":
            ListLayout.objects.filter(user_id=self.caller.user_id, table_key=table_key(opened)).delete()
        elif step == "widths":
            self.save(context, opened, paths, request.POST.getlist("width"))
            return HttpResponse(status=204)
        elif step == "save" and paths:
            self.save(context, opened, paths)
        else:
            error = "" if step != "save" else "Choose at least one column."
            if step == "add":
                paths, error = add_path(context, opened, paths, request.POST.get("new-path", "").strip())
            return self.show(context, opened, state, moved(paths, step, subject), error)
        url = ListState(table, state.query, state.view, group=state.group, saved=state.saved).url()
        if "HX-Request" in request.headers:
            return HttpResponse(headers={"HX-Redirect": url})
        return redirect(url)

    def save(self, context: ReadContext, table: Table, paths: list[str], widths: list[str] | None = None) -> None:
        if len(paths) > MAX_COLUMNS:
            raise InvalidInput(f"A list can have at most {MAX_COLUMNS} columns.", field="path")
        stored = {item["path"]: item["width"] for item in list_contents.read_layout(context, table)}
        if widths is not None:
            stored |= dict(zip(paths, map(read_width, widths), strict=False))
        layout = [{"path": path, "width": stored.get(path, 0)} for path in paths]
        ListLayout.objects.update_or_create(
            user_id=self.caller.user_id, table_key=table_key(table), defaults={"columns": layout}
        )

    def show(
        self, context: ReadContext, table: Table, state: ListState, paths: list[str], error: str = ""
    ) -> HttpResponse:
        view = context.view
        others = {path: label for path, label in columns.selectable_columns(view, table).items() if path not in paths}
        values: dict[str, Any] = {
            "table": table,
            "state": state,
            "chosen": columns.path_labels(view, table, paths),
            "others": others,
            "walked": columns.walked_columns(view, table).values(),
            "error": error,
        }
        is_fragment = "HX-Request" in self.request.headers
        template = "workspace/list_columns_form.html" if is_fragment else "workspace/list_columns.html"
        return render(self.request, template, values)


def read_width(text: str) -> int:
    """A width in pixels within the limits; 0 for an automatic one."""
    width = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0
    return min(max(width, MIN_WIDTH), MAX_WIDTH) if width else 0


def moved(paths: list[str], step: str, subject: str) -> list[str]:
    """
    >>> moved(["a", "b", "c"], "up", "c"), moved(["a", "b"], "down", "b"), moved(["a", "b"], "down", "a")
    (['a', 'c', 'b'], ['a', 'b'], ['b', 'a'])
    """
    if step not in ("up", "down") or subject not in paths:
        return paths
    index = paths.index(subject) + (-1 if step == "up" else 1)
    others = [path for path in paths if path != subject]
    return [*others[: max(index, 0)], subject, *others[max(index, 0) :]]


def add_path(context: ReadContext, table: Table, paths: list[str], text: str) -> tuple[list[str], str]:
    """Add a column that is given by its label or its path, or return an error."""
    names = {label: path for path, label in columns.walked_columns(context.view, table).items()}
    path = names.get(text, text)
    if not path or columns.resolve(context.view, table, path) is None:
        return paths, f'There is no column "{text[:80]}".' if text else "Enter a column."
    return list(dict.fromkeys([*paths, path])), ""
