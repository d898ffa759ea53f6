"""Sections and order of a form: from the form view of the table, otherwise by the types of its columns. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, OWN_TABLE_COLUMN, Column, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES

from .controls import column_label, is_wide

FORM_VIEW_NAMES = ("form", *DEFAULT_VIEW_NAMES)
LABEL_SEPARATOR = " › "  # noqa: RUF001
OTHER_SECTION, SYSTEM_SECTION = "More", "Record"
# Columns that usually tell what a record is about.
TITLE_NAMES = frozenset({"name", "title", "short_description", "subject"})
SYSTEM_COLUMNS = (
    "sys_created_at", "sys_created_by", "sys_updated_at", "sys_updated_by", OWN_TABLE_COLUMN, "sys_id",
)  # fmt: skip


@dataclass(frozen=True)
class FormPath:
    """A column of the record, or of a record to which the first columns lead."""

    key: str
    columns: tuple[Column, ...]

    @property
    def column(self) -> Column:
        return self.columns[-1]

    @property
    def is_own(self) -> bool:
        return len(self.columns) == 1

    @property
    def label(self) -> str:
        return LABEL_SEPARATOR.join(map(column_label, self.columns))

    @property
    def is_wide(self) -> bool:
        return is_wide(self.column)

    def is_subject(self, table: Table) -> bool:
        """Whether the column tells, beside the display value, what the record is about."""
        return self.is_own and self.column.name in TITLE_NAMES and self.column is not table.display_column


# The paths by the title of their section.
Sections = dict[str, list[FormPath]]


def layout(
    view: CallerView, table: Table, is_shown: Callable[[FormPath], bool], required_names: Iterable[str]
) -> Sections:
    """The sections with the paths that are shown. Required columns are included even if the form view omits them."""
    entries = view.catalogue.form_view(table, *FORM_VIEW_NAMES) or [(name, "") for name in automatic_order(table)]
    # Only tables that others extend contain records of several tables.
    hidden = {OWN_TABLE_COLUMN} if len(table.family) == 1 else set()
    others = [(name, OTHER_SECTION) for name in required_names if name not in SYSTEM_COLUMNS and name in table.columns]
    system = [(name, SYSTEM_SECTION) for name in SYSTEM_COLUMNS if name not in hidden]
    titles: dict[str, str] = {}
    for key, title in (*entries, *others, *system):
        titles.setdefault(key, title)
    sections: Sections = {}
    for key, title in titles.items():
        path = form_path(view, table, key)
        if path is not None and is_shown(path):
            sections.setdefault(title, []).append(path)
    return sections


def form_path(view: CallerView, table: Table, key: str) -> FormPath | None:
    if key in table.columns:
        return FormPath(key, (table.columns[key],))
    path = resolve_path(view, table, tuple(key.split("."))) if "." in key else None
    return None if path is None else FormPath(key, (*(step.column for step in path.steps), path.column))


def automatic_order(table: Table) -> list[str]:
    """Number and title, then short values, then long texts."""

    def rank(column: Column) -> int:
        if column.name == NUMBER_COLUMN:
            return 0
        if column is table.display_column or column.name in TITLE_NAMES:
            return 1
        return 3 if is_wide(column) else 2

    return [column.name for column in sorted(table.columns.values(), key=rank) if not column.is_sys]


def summary_columns(view: CallerView, table: Table, count: int) -> list[Column]:
    """The display column and the first short ones that the caller can read, for a row of a related list."""
    entries = view.catalogue.form_view(table, *DEFAULT_VIEW_NAMES)
    names = [key for key, _ in entries] if entries else automatic_order(table)
    columns = [found[0] for name in names if (found := view.column(table, name)) is not None]
    columns.sort(key=lambda column: column is not table.display_column)
    return [column for column in columns if not is_wide(column)][:count]
