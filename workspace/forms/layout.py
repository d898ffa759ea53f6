"""Sections and order of a form: from the form view of the table, otherwise by the types of its columns. Pure."""

from collections.abc import Callable, Iterable

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, OWN_TABLE_COLUMN, Column, Table
from tableapi.query.expressions import ResolvedPath
from tableapi.query.path_resolver import resolve_path
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES

from .controls import is_wide

OTHER_SECTION, SYSTEM_SECTION = "More", "Record"
# Columns that usually tell what a record is about.
TITLE_NAMES = frozenset({"name", "title", "short_description", "subject"})
SYSTEM_COLUMNS = (
    "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", OWN_TABLE_COLUMN, "sys_id",
)  # fmt: skip

# By the title of each section, and by path: columns of the record, and of records to which it refers.
Sections = dict[str, dict[str, ResolvedPath]]


def layout(
    view: CallerView, table: Table, is_shown: Callable[[ResolvedPath], bool], required_names: Iterable[str]
) -> Sections:
    """The sections with the paths that are shown. Required columns are included even if the form view omits them."""
    # Only tables that others extend contain records of several tables.
    hidden = {OWN_TABLE_COLUMN} if len(table.family) == 1 else set()
    others = [(name, OTHER_SECTION) for name in required_names if name not in SYSTEM_COLUMNS and name in table.columns]
    system = [(name, SYSTEM_SECTION) for name in SYSTEM_COLUMNS if name not in hidden]
    titles: dict[str, str] = {}
    for key, title in (*_view_entries(view, table, "form", *DEFAULT_VIEW_NAMES), *others, *system):
        titles.setdefault(key, title)
    sections: Sections = {}
    for key, title in titles.items():
        # A secret column cannot be read, so it cannot be resolved.
        own = table.columns.get(key)
        path = ResolvedPath((), own) if own is not None else resolve_path(view, table, tuple(key.split(".")))
        if path is not None and is_shown(path):
            sections.setdefault(title, {})[key] = path
    return sections


def _view_entries(view: CallerView, table: Table, *view_names: str) -> Iterable[tuple[str, str]]:
    """The paths and sections of the first of these views, or number and title, then short values, then long texts."""
    if entries := view.catalogue.form_view(table, *view_names):
        return entries

    def rank(column: Column) -> int:
        if column.name == NUMBER_COLUMN:
            return 0
        if column is table.display_column or column.name in TITLE_NAMES:
            return 1
        return 3 if is_wide(column) else 2

    return [(column.name, "") for column in sorted(table.columns.values(), key=rank) if not column.is_sys]


def summary_columns(view: CallerView, table: Table, count: int) -> list[Column]:
    """The display column and the first short ones that the caller can read, for a row of a related list."""
    names = [key for key, _ in _view_entries(view, table, *DEFAULT_VIEW_NAMES)]
    columns = [found[0] for name in names if (found := view.column(table, name)) is not None]
    columns.sort(key=lambda column: column is not table.display_column)
    return [column for column in columns if not is_wide(column)][:count]
