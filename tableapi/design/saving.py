"""Saves tables, columns, choices, views and rules: one function per model, called by designer, API and setup.

    lock ──▶ validate with the catalogue ──▶ row ──▶ ALTER TABLE ──▶ commit ──▶ build the indexes of large tables

The models disable `save()`. Deletions need no function: `tableapi.signals` drops tables and columns however their
records are deleted, including by a cascade.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.exceptions import ValidationError

from system.records import savers
from system.records.savers import RecordSaver
from tableapi.catalogue.definitions import NUMBER_COLUMN
from tableapi.ddl import schema_editor
from tableapi.design import catalogue_checks
from tableapi.models import Choice, Column, Rule, SetRule, Table, View, ViewColumn
from tableapi.models.catalogue_version import CatalogueRecord
from tableapi.models.validation import MAX_NUMBER_LENGTH

RecordType = TypeVar("RecordType", bound=CatalogueRecord)
ID_FIELDS = frozenset({"sys_id"})


def save_table(table: Table) -> None:
    """Save the table. A new one is created in the database; a number prefix adds the column `number`."""
    with _saving_row(table) as previous:
        if table.is_system:
            return
        if previous is None:
            schema_editor.create_table(table)
        if table.number_prefix and (previous is None or not previous.number_prefix):
            schema_editor.create_sequence(table)
            _add_number_column(table)


def _add_number_column(table: Table) -> None:
    relatives = [*table.lineage, *table.descendants]
    if Column.objects.filter(table__in=relatives, name=NUMBER_COLUMN).exists():
        return
    options = {"read_only": True, "is_unique": True, "is_display": True}
    save_column(Column(table=table, name=NUMBER_COLUMN, label="Number", max_length=MAX_NUMBER_LENGTH, **options))


def save_column(column: Column) -> None:
    """Save the column and add it to its table in the database, or change it there."""
    with _saving_row(column) as previous:
        if not column.is_designed:
            return
        if previous is None:
            schema_editor.add_columns(column.table, [column])
        else:
            schema_editor.change_column(column, previous)
        if column.is_display:
            for other in column.table.columns.filter(is_display=True).exclude(pk=column.pk):
                other.is_display = False
                save_column(other)


def _save_row(record: Choice | View | ViewColumn | Rule | SetRule) -> None:
    with _saving_row(record):
        pass  # nothing else changes in the database


save_choice = save_view = save_view_column = save_rule = save_set_on_change_rule = _save_row


@contextmanager
def _saving_row(record: RecordType) -> Iterator[RecordType | None]:
    """Save the row under the design lock; the block changes the database. Yields the record as it was before."""
    with schema_editor.design_lock():
        previous = record.stored_record()
        validate(record)
        record.save_row()
        yield previous


def validate(record: CatalogueRecord) -> None:
    """Raise one `ValidationError` with the errors of all columns.

    Like `full_clean`, but the check against the catalogue precedes those for unique values, which skip columns that
    are already invalid.
    """
    record.check_characters()
    errors: dict[str, Any] = {}
    checks: tuple[Callable[[], None], ...] = (
        lambda: record.clean_fields(exclude=ID_FIELDS),
        record.clean,
        lambda: check_against_catalogue(record),
        lambda: record.validate_unique(exclude=ID_FIELDS | errors.keys()),
        lambda: record.validate_constraints(exclude=ID_FIELDS | errors.keys()),
    )
    for check in checks:
        try:
            check()
        except ValidationError as error:
            error.update_error_dict(errors)
    if errors:
        raise ValidationError(errors)


def check_against_catalogue(record: CatalogueRecord) -> None:
    if isinstance(record, Rule):
        catalogue_checks.check_rule(record)
    elif isinstance(record, ViewColumn):
        catalogue_checks.check_path_in_view(record, record.path)
    elif isinstance(record, SetRule):
        catalogue_checks.check_set_on_change_rule(record)


class DesignSaver(RecordSaver):
    def __init__(self, save: Callable[[Any], None]) -> None:
        self._save = save

    def clean(self, record: Any, prepared: Any = None) -> None:
        validate(record)

    def save(self, record: Any, prepared: Any = None) -> None:
        self._save(record)


def register() -> None:
    savers.register(Table, DesignSaver(save_table))
    savers.register(Column, DesignSaver(save_column))
    for model in (Choice, View, ViewColumn, Rule, SetRule):
        savers.register(model, DesignSaver(_save_row))
