"""Sections and order of a form: from the form view of the table, otherwise by the types of its columns. Pure."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, OWN_TABLE_COLUMN, Column, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.query.read_plan import DEFAULT_VIEW_NAMES

from .controls import KINDS, column_label

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
    """A column of the record, or of a record that it refers to."""

    key: str
    label: str
    column: Column

    @property
    def is_own(self) -> bool:
        return "." not in self.key

    @property
    def is_wide(self) -> bool:
        return self.column.type in KINDS and KINDS[self.column.type].is_wide


@dataclass(frozen=True)
class LayoutSection:
    title: str
    paths: tuple[FormPath, ...]


def layout(
    view: CallerView,
    table: Table,
    is_shown: Callable[[Column], bool],
    required_names: Collection[str],
    *,
    has_paths: bool = True,
) -> list[LayoutSection]:
    """The sections with the columns that are shown. Required columns are shown even if the form view omits them.

    For a new record, `is_shown` refuses columns that only the server sets, so that the section of these is omitted.
    """
    entries = view.catalogue.form_view(table, *FORM_VIEW_NAMES)
    is_automatic = entries is None
    sections: dict[str, list[FormPath]] = {}
    for key, title in entries or ((column.name, "") for column in automatic_order(table)):
        path = form_path(view, table, key, is_shown)
        if path is not None and (has_paths or path.is_own):
            sections.setdefault(title, []).append(path)
    keys = {path.key for paths in sections.values() for path in paths}
    if not is_automatic:
        others = [form_path(view, table, name, is_shown) for name in required_names if name not in keys]
        sections.setdefault(OTHER_SECTION, []).extend(path for path in others if path is not None)
    # Only tables that others extend contain records of several tables.
    hidden = {OWN_TABLE_COLUMN} if len(table.family) == 1 else set()
    system = [form_path(view, table, name, is_shown) for name in SYSTEM_COLUMNS if name not in keys | hidden]
    sections.setdefault(SYSTEM_SECTION, []).extend(path for path in system if path is not None)
    return [LayoutSection(title, tuple(paths)) for title, paths in sections.items() if paths]


def form_path(view: CallerView, table: Table, key: str, is_shown: Callable[[Column], bool]) -> FormPath | None:
    if "." not in key:
        column = table.columns.get(key)
        return FormPath(key, column_label(column), column) if column is not None and is_shown(column) else None
    path = resolve_path(view, table, tuple(key.split(".")))
    # The walked columns exist as long as the record does.
    if path is None or not is_shown(path.steps[0].column):
        return None
    columns = (*(step.column for step in path.steps), path.column)
    return FormPath(key, LABEL_SEPARATOR.join(map(column_label, columns)), path.column)


def automatic_order(table: Table) -> Iterator[Column]:
    """Number and title, then short values, then long texts."""

    def rank(column: Column) -> int:
        if column.name == NUMBER_COLUMN:
            return 0
        if column is table.display_column or column.name in TITLE_NAMES:
            return 1
        return 3 if column.type in KINDS and KINDS[column.type].is_wide else 2

    return iter(sorted((column for column in table.columns.values() if not column.is_sys), key=rank))


def summary_columns(view: CallerView, table: Table, count: int) -> list[Column]:
    """The display column and the first short ones that the caller can read, for a row of a related list."""
    entries = view.catalogue.form_view(table, *DEFAULT_VIEW_NAMES)
    names = [key for key, _ in entries] if entries else [column.name for column in automatic_order(table)]
    columns = [found[0] for name in names if "." not in name and (found := view.column(table, name)) is not None]
    columns.sort(key=lambda column: column is not table.display_column)
    return [column for column in columns if column.type not in KINDS or not KINDS[column.type].is_wide][:count]
