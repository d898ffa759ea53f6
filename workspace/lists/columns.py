"""The columns of a list: which ones it shows, their labels, and the columns that one can choose from. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from system.encoded_query import ComparisonKind
from system.errors import InvalidParameter
from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import WRITE, Column, Table
from tableapi.query.expressions import NEVER, ResolvedPath
from tableapi.query.path_resolver import resolve_path
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES
from tableapi.statistics.plan import DISTINCT_KINDS

from .query_description import PATH_SEPARATOR

LIST_VIEW = "list"
MAX_AUTOMATIC_COLUMNS = 10
# The width of a column without one in a list where others have one.
USUAL_WIDTH = 160
NUMBER_KINDS = (ComparisonKind.INTEGER, ComparisonKind.DECIMAL)


@dataclass(frozen=True)
class ListColumn:
    path: str
    label: str
    column: Column
    is_editable: bool
    width: int = 0

    @property
    def is_sortable(self) -> bool:
        return self.column.column_type.is_sortable

    @cached_property
    def is_number(self) -> bool:
        return self.column.compare_as in NUMBER_KINDS

    @cached_property
    def is_plain(self) -> bool:
        """Whether the display value is the text to show."""
        kind = self.column.column_type
        return not (kind.is_html or kind.is_list or kind.is_json or self.column.compare_as is ComparisonKind.DATETIME)


def list_columns(
    view: CallerView, table: Table, chosen: Sequence[str], view_name: str, layout: Sequence[Mapping[str, object]]
) -> list[ListColumn]:
    """The columns of a page: those of the URL, the person's own, those of a form view, or an automatic choice.

    Columns that the caller cannot see are left out; a choice without any visible column is not used.
    """
    widths = {str(item["path"]): int(str(item["width"])) for item in layout}
    candidates = [tuple(chosen), tuple(widths), *_view_choices(view, table, view_name), automatic_paths(view, table)]
    paths = next(filter(None, (visible_paths(view, table, names) for names in candidates)), [])
    labels = path_labels(view, table, paths)
    return [
        ListColumn(path, labels[path], resolved.column, _is_editable(view, table, resolved), widths.get(path, 0))
        for path in paths
        if (resolved := resolve(view, table, path))
    ]


def _view_choices(view: CallerView, table: Table, view_name: str) -> Iterator[tuple[str, ...]]:
    if view_name and view_name not in DEFAULT_VIEW_NAMES and view.catalogue.view(table, view_name) is None:
        raise InvalidParameter(f'There is no view named "{view_name[:80]}".', field="sysparm_view")
    for name in filter(None, (view_name, LIST_VIEW, *DEFAULT_VIEW_NAMES)):
        yield view.catalogue.view(table, name) or ()


def automatic_paths(view: CallerView, table: Table) -> list[str]:
    """The display column and the number, then columns with short values, and when the record was changed."""
    first = [column.name for column in (table.display_column, table.columns.get("number")) if column]
    short = [column.name for column in table.columns.values() if not column.is_sys and _is_short(column)]
    names = visible_paths(view, table, dict.fromkeys([*first, *short]))[: MAX_AUTOMATIC_COLUMNS - 1]
    return [*names, *visible_paths(view, table, ["sys_updated_at"])]


def _is_short(column: Column) -> bool:
    kind = column.column_type
    return not (kind.is_html or kind.is_json or kind.is_list or column.type == "text")


def can_write(view: CallerView, table: Table, column: Column) -> bool:
    """Whether the caller may write the column in some records; the write decides about each record."""
    permissions = view.permissions
    return (
        not table.is_server_managed(column)
        and view.column(table, "sys_id") is not None
        and permissions.record_decision(WRITE, table) != NEVER
        and permissions.column_decision(WRITE, table, column) != NEVER
    )


def _is_editable(view: CallerView, table: Table, resolved: ResolvedPath) -> bool:
    """Whether the column can be edited in the list. The editor of formatted text is on the record's page."""
    return not resolved.steps and not resolved.column.column_type.is_html and can_write(view, table, resolved.column)


def writable_columns(view: CallerView, table: Table) -> dict[str, str]:
    """The columns that the caller may write, with their labels."""
    labels = selectable_columns(view, table)
    return {path: label for path, label in labels.items() if can_write(view, table, table.columns[path])}


def resolve(view: CallerView, table: Table, path: str) -> ResolvedPath | None:
    return resolve_path(view, table, tuple(path.split(".")))


def visible_paths(view: CallerView, table: Table, paths: Iterable[str]) -> list[str]:
    return [path for path in paths if resolve(view, table, path) is not None]


def path_labels(view: CallerView, table: Table, paths: Iterable[str]) -> dict[str, str]:
    """The label of each visible path: those of its columns. Equal labels are followed by the path."""
    labels = {path: _label(resolved) for path in paths if (resolved := resolve(view, table, path)) is not None}
    counts = Counter(labels.values())
    return {path: f"{label} ({path})" if counts[label] > 1 else label for path, label in labels.items()}


def _label(path: ResolvedPath) -> str:
    columns = [*(step.column for step in path.steps), path.column]
    return PATH_SEPARATOR.join(column.label or column.name for column in columns)


def selectable_columns(view: CallerView, table: Table) -> dict[str, str]:
    """The table's own columns that the caller can see, with their labels in alphabetical order."""
    labels = path_labels(view, table, table.columns)
    return dict(sorted(labels.items(), key=lambda item: item[1].casefold()))


def walked_columns(view: CallerView, table: Table) -> dict[str, str]:
    """The columns of the records that the table's references lead to, with their labels."""
    references = [column for column in table.columns.values() if column.column_type.is_reference]
    targets = [(column.name, view.catalogue.tables.get(column.reference or "")) for column in references]
    paths = [f"{name}.{column}" for name, target in targets if target is not None for column in target.columns]
    labels = path_labels(view, table, paths)
    return dict(sorted(labels.items(), key=lambda item: item[1].casefold()))


def groupable_columns(view: CallerView, table: Table) -> tuple[tuple[str, str], ...]:
    """The columns by which records can be grouped, with their labels; cached because each page offers them."""

    def find() -> tuple[tuple[str, str], ...]:
        return tuple(
            (path, label)
            for path, label in selectable_columns(view, table).items()
            if table.columns[path].compare_as in DISTINCT_KINDS - {ComparisonKind.ID}
        )

    return view.cached(("groupable columns", table.name), find)
