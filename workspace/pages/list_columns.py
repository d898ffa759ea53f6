"""The columns that a person chooses for the list of a table, and their widths."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from system.errors import InvalidInput
from tableapi.changes.logged_values import table_key
from workspace.lists import columns, list_contents
from workspace.lists.list_state import ListState, parse_state
from workspace.models import ListLayout
from workspace.pages.table_page import TablePage

MAX_COLUMNS = 50
MIN_WIDTH, MAX_WIDTH = 48, 1_200


class ColumnsPage(TablePage):
    """`/tables/{table}/columns/`. Each button posts the whole form, so that it works without scripts."""

    state: ListState

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        self.state = parse_state(table, request.GET)
        return self.respond(table, lambda: self.show([column.path for column in self.current_columns()]))

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        self.state = parse_state(table, QueryDict(request.POST.get("list-state", "")))
        return self.respond(table, self.take_step)

    def current_columns(self) -> list[columns.ListColumn]:
        return list_contents.columns_of(self.read_context, self.table, self.state)

    def take_step(self) -> HttpResponse:
        post, view = self.request.POST, self.read_context.view
        paths = columns.visible_paths(view, self.table, dict.fromkeys(post.getlist("path")))
        step, _, subject = post.get("step", "save").partition(":")
        if step == "widths":
            self.save(paths, post.getlist("width"))
            return HttpResponse(status=204)
        if step == "add":
            return self.show(*self.add_path(paths, post.get("new-path", "").strip()))
        if step not in ("save", "reset"):
            return self.show(moved(paths, step, subject))
        if step == "reset":
            ListLayout.objects.filter(user_id=self.caller.user_id, table_key=table_key(self.table)).delete()
        elif paths:
            self.save(paths)
        else:
            return self.show(paths, "Choose at least one column.")
        url = replace(self.state.first_page, columns=()).url()
        return HttpResponse(headers={"HX-Redirect": url}) if "HX-Request" in self.request.headers else redirect(url)

    def save(self, paths: list[str], widths: list[str] | None = None) -> None:
        if len(paths) > MAX_COLUMNS:
            raise InvalidInput(f"A list can have at most {MAX_COLUMNS} columns.", field="path")
        stored = {item["path"]: item["width"] for item in list_contents.read_layout(self.read_context, self.table)}
        stored |= dict(zip(paths, map(read_width, widths or []), strict=False))
        layout = [{"path": path, "width": stored.get(path, 0)} for path in paths]
        ListLayout.objects.update_or_create(
            user_id=self.caller.user_id, table_key=table_key(self.table), defaults={"columns": layout}
        )

    def add_path(self, paths: list[str], text: str) -> tuple[list[str], str]:
        """Add a column that is given by its label or its path, or return an error."""
        view = self.read_context.view
        names = {label: path for path, label in columns.walked_columns(view, self.table).items()}
        path = names.get(text, text)
        if not path or columns.resolve(view, self.table, path) is None:
            return paths, f'There is no column "{text[:80]}".' if text else "Enter a column."
        return list(dict.fromkeys([*paths, path])), ""

    def show(self, paths: list[str], error: str = "") -> HttpResponse:
        view, table = self.read_context.view, self.table
        own = columns.selectable_columns(view, table)
        values = {
            "table": table,
            "state": self.state,
            "chosen": columns.path_labels(view, table, paths),
            "others": {path: label for path, label in own.items() if path not in paths},
            "walked": columns.walked_columns(view, table).values(),
            "error": error,
        }
        suffix = "_form" if "HX-Request" in self.request.headers else ""
        return render(self.request, f"workspace/list_columns{suffix}.html", values)


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
    index = max(paths.index(subject) + (-1 if step == "up" else 1), 0)
    others = [path for path in paths if path != subject]
    return [*others[:index], subject, *others[index:]]
