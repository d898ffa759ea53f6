"""The columns that a person chooses for the list of a table, and their widths."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from system.errors import InvalidInput
from tableapi.changes.logged_values import table_key
from workspace.lists import columns, list_contents
from workspace.lists.list_state import ListState, parse_state
from workspace.models import ListLayout
from workspace.pages.base import TablePage

MAX_COLUMNS = 50
MIN_WIDTH, MAX_WIDTH = 48, 1_200


class ColumnsPage(TablePage):
    """`/tables/{table}/columns/`. Each button posts the whole form, so that it works without scripts."""

    state: ListState

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        self.state = parse_state(table, request.GET)
        shown = list_contents.columns_of(self.read_context, self.table, self.state)
        return self.show([column.path for column in shown])

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        self.state = parse_state(table, QueryDict(request.POST.get("list-state", "")))
        paths = list(columns.visible_paths(self.read_context.view, self.table, request.POST.getlist("path")))
        step, _, subject = request.POST.get("step", "save").partition(":")
        match step:
            case "widths":
                self.save(paths, request.POST.getlist("width"))
                return HttpResponse(status=204)
            case "add":
                return self.show(*self.add_path(paths, request.POST.get("new-path", "").strip()))
            case "up" | "down":
                return self.show(moved(paths, subject, -1 if step == "up" else 1))
            case "reset":
                ListLayout.objects.filter(user_id=self.caller.user_id, table_key=table_key(self.table)).delete()
            case _ if paths:
                self.save(paths, [])
            case _:
                return self.show(paths, "Choose at least one column.")
        url = self.state.first_page(columns="").url
        return HttpResponse(headers={"HX-Redirect": url}) if "HX-Request" in request.headers else redirect(url)

    def save(self, paths: list[str], widths: list[str]) -> None:
        if len(paths) > MAX_COLUMNS:
            raise InvalidInput(f"A list can have at most {MAX_COLUMNS} columns.", field="path")
        layout, _ = list_contents.read_settings(self.read_context, self.table)
        stored = {item["path"]: item["width"] for item in layout}
        stored |= dict(zip(paths, map(read_width, widths), strict=False))
        layout = [{"path": path, "width": stored.get(path, 0)} for path in paths]
        ListLayout.objects.update_or_create(
            user_id=self.caller.user_id, table_key=table_key(self.table), defaults={"columns": layout}
        )

    def add_path(self, paths: list[str], text: str) -> tuple[list[str], str]:
        """Add a column that is given by its label or its path, or return an error."""
        view = self.read_context.view
        names = {label: path for path, label in columns.walked_columns(view, self.table).items()}
        new_paths = columns.visible_paths(view, self.table, [names.get(text, text)])
        error = f'There is no column "{text[:80]}".' if text else "Enter a column."
        return list(dict.fromkeys([*paths, *new_paths])), "" if new_paths else error

    def show(self, paths: list[str], error: str = "") -> HttpResponse:
        view, table = self.read_context.view, self.table
        own = columns.selectable_columns(view, table)
        values = {
            "table": table,
            "state": self.state,
            "chosen": columns.path_labels(columns.visible_paths(view, table, paths)),
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


def moved(paths: list[str], path: str, distance: int) -> list[str]:
    """
    >>> moved(["a", "b", "c"], "c", -1), moved(["a", "b"], "b", 1), moved(["a", "b"], "x", 1)
    (['a', 'c', 'b'], ['a', 'b'], ['a', 'b'])
    """
    if path not in paths:
        return paths
    index = max(paths.index(path) + distance, 0)
    others = [other for other in paths if other != path]
    return [*others[:index], path, *others[index:]]
