"""The columns of a list: which ones it shows, their labels, and the columns that one can choose from. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.html import format_html_join

from system.encoded_query import ComparisonKind
from system.errors import InvalidParameter
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, WRITE, Column, Table
from tableapi.query.expressions import NEVER, ResolvedPath
from tableapi.query.path_resolver import resolve_path
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES
from tableapi.statistics.plan import DISTINCT_KINDS
from workspace.forms.display import path_label

LIST_VIEW = "list"
MAX_AUTOMATIC_COLUMNS = 10
# The width of a column without one in a list where others have one.
USUAL_WIDTH = 160

# The columns that the caller can see, by path, and their labels.
Paths = dict[str, ResolvedPath]
Labels = dict[str, str]


@dataclass(frozen=True)
class ListColumn:
    """`width` is 0 if no column of the list has one."""

    path: str
    label: str
    column: Column
    is_editable: bool
    width: int

    @property
    def is_number(self) -> bool:
        return self.column.compare_as in (ComparisonKind.INTEGER, ComparisonKind.DECIMAL)


def list_columns(
    view: CallerView, table: Table, chosen: Sequence[str] = (), view_name: str = "", layout: Sequence[Any] = ()
) -> list[ListColumn]:
    """The columns of a page: those of the URL, the person's own, those of a form view, or an automatic choice.

    Columns that the caller cannot see are left out; a choice without any visible column is not used.
    """
    widths = {item["path"]: item["width"] for item in layout}
    usual_width = USUAL_WIDTH if any(widths.values()) else 0
    choices = (chosen, widths, *_view_choices(view, table, view_name), _automatic_choice(view, table))
    paths: Paths = next(filter(None, (visible_paths(view, table, choice) for choice in choices)), {})
    labels = path_labels(paths)
    return [
        ListColumn(path, labels[path], found.column, _is_editable(view, table, found), widths.get(path) or usual_width)
        for path, found in paths.items()
    ]


def _view_choices(view: CallerView, table: Table, view_name: str) -> Iterator[tuple[str, ...]]:
    if view_name and view_name not in DEFAULT_VIEW_NAMES and view.catalogue.view(table, view_name) is None:
        raise InvalidParameter(f'There is no view named "{view_name[:80]}".', field="sysparm_view")
    for name in filter(None, (view_name, LIST_VIEW, *DEFAULT_VIEW_NAMES)):
        yield view.catalogue.view(table, name) or ()


def _automatic_choice(view: CallerView, table: Table) -> list[str]:
    """The display column and the number, then columns with short values, and when the record was changed."""
    first = [column.name for column in (table.display_column, table.columns.get(NUMBER_COLUMN)) if column]
    short = [column.name for column in table.columns.values() if not column.is_sys and _is_short(column)]
    return [*[*visible_paths(view, table, [*first, *short])][: MAX_AUTOMATIC_COLUMNS - 1], "sys_updated_at"]


def _is_short(column: Column) -> bool:
    kind = column.column_type
    return not (kind.is_html or kind.is_json or kind.is_list or column.type == "text")


def _is_editable(view: CallerView, table: Table, path: ResolvedPath) -> bool:
    """Whether the column can be edited in the list. The editor of formatted text is on the record's page."""
    return not path.steps and not path.column.column_type.is_html and can_write(view, table, path.column)


def can_write(view: CallerView, table: Table, column: Column) -> bool:
    """Whether the caller may write the column in some records; the write decides about each record."""
    permissions = view.permissions
    return (
        not table.is_server_managed(column)
        and view.column(table, "sys_id") is not None
        and permissions.record_decision(WRITE, table) != NEVER
        and permissions.column_decision(WRITE, table, column) != NEVER
    )


def visible_paths(view: CallerView, table: Table, paths: Iterable[str]) -> Paths:
    found = ((path, resolve_path(view, table, tuple(path.split(".")))) for path in paths)
    return {path: resolved for path, resolved in found if resolved is not None}


def path_labels(paths: Mapping[str, ResolvedPath]) -> Labels:
    """The label of each path: those of its columns. Equal labels are followed by the path."""
    labels = {path: path_label(resolved) for path, resolved in paths.items()}
    counts = Counter(labels.values())
    return {path: f"{label} ({path})" if counts[label] > 1 else label for path, label in labels.items()}


def selectable_columns(view: CallerView, table: Table, paths: Iterable[str] | None = None) -> Labels:
    """The labels of these columns, in alphabetical order, or of all columns of the table itself."""
    labels = path_labels(visible_paths(view, table, table.columns if paths is None else paths))
    return dict(sorted(labels.items(), key=lambda item: item[1].casefold()))


def walked_columns(view: CallerView, table: Table) -> Labels:
    """The columns of the records that the table's references lead to."""
    references = [column for column in table.columns.values() if column.column_type.is_reference]
    targets = [(column.name, view.catalogue.tables.get(column.reference or "")) for column in references]
    paths = [f"{name}.{path}" for name, target in targets if target for path in target.columns]
    return selectable_columns(view, table, paths)


def writable_columns(view: CallerView, table: Table) -> Labels:
    labels = selectable_columns(view, table)
    return {path: label for path, label in labels.items() if can_write(view, table, table.columns[path])}


def group_options(view: CallerView, table: Table) -> str:
    """The columns by which records can be grouped, as HTML; cached because each page offers them."""
    kinds, names = DISTINCT_KINDS - {ComparisonKind.ID}, selectable_columns(view, table)
    options = [(path, label) for path, label in names.items() if table.columns[path].compare_as in kinds]
    return format_html_join("", '<option value="{}">{}</option>', options)
