"""Describes the product tables in the catalogue.

Each model lists the columns to show, so that key hashes, staff flags and sessions never become columns.
"""

from collections.abc import Iterator
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.text import capfirst

from system.records.record import Record
from tableapi.catalogue.column_types import COLUMN_TYPES, type_names_where
from tableapi.ddl import schema_editor
from tableapi.models import Choice, Column, State, Table
from tableapi.write import product_records

# Column types by the class name of a field or its nearest base class.
TYPE_BY_FIELD_CLASS = {field: row.name for row in COLUMN_TYPES.values() for field in row.model_fields}


def update_product_tables() -> None:
    """Update the catalogue to match the models. Writes nothing if they already match."""
    with schema_editor.design_lock(), schema_editor.allow_product_changes():
        State.locked_row()
        models_by_table = {model._meta.db_table: model for model in product_records.models_with_columns()}
        has_changed = _create_tables(models_by_table)
        tables = {table.name: table for table in Table.objects.filter(is_system=True)}
        has_changed |= _update_columns(models_by_table, tables)
        has_changed |= _update_choices(models_by_table)
        removed_tables = Table.objects.filter(is_system=True, name__in=tables.keys() - models_by_table.keys())
        has_changed |= bool(removed_tables.delete()[0])
        if has_changed:
            State.increment_version()


def _create_tables(models_by_table: dict[str, type[Record]]) -> bool:
    existing_names = set(Table.objects.filter(name__in=models_by_table).values_list("name", flat=True))
    new_tables = [
        Table(name=name, label=capfirst(str(model._meta.verbose_name)), is_system=True)
        for name, model in models_by_table.items()
        if name not in existing_names
    ]
    Table.objects.bulk_create(new_tables)
    return bool(new_tables)


def _update_columns(models_by_table: dict[str, type[Record]], tables: dict[str, Table]) -> bool:
    stored = {
        (column.table_id, column.name): column
        for column in Column.objects.filter(table__is_system=True).exclude(physical_name="")
    }
    new, changed, updated_fields = [], [], {"sys_updated_at", "sys_version"}
    for table_id, name, values in _describe_columns(models_by_table, tables):
        column = stored.pop((table_id, name), None)
        if column is None:
            new.append(Column(table_id=table_id, name=name, **values))
            continue
        del values["label"]  # administrators may change it
        if any(getattr(column, attribute) != value for attribute, value in values.items()):
            for attribute, value in values.items():
                setattr(column, attribute, value)
            column.sys_updated_at, column.sys_version = timezone.now(), column.sys_version + 1
            changed.append(column)
            updated_fields |= values.keys()
    Column.objects.bulk_create(new)
    Column.objects.bulk_update(changed, updated_fields)
    # The remaining columns no longer have a field.
    Column.objects.filter(pk__in=[column.pk for column in stored.values()]).delete()
    return bool(new or changed or stored)


def _describe_columns(
    models_by_table: dict[str, type[Record]], tables: dict[str, Table]
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for table_name, model in models_by_table.items():
        if table_name not in tables:
            continue  # an administrator designed a table with this name before the product had one
        for name in model.table_columns:
            values = _describe_column(model, name, tables)
            if values is not None:
                yield tables[table_name].pk, name, values


def _describe_column(model: type[Record], name: str, tables: dict[str, Table]) -> dict[str, Any] | None:
    """Return the attributes of the column for a field, or None if it refers to a table outside the catalogue."""
    field: Any = model._meta.get_field(name)
    type_name, target = _type_of(model, field)
    if target is not None and target not in tables:
        return None
    is_secret = name in model.secret_columns
    is_optional = field.blank or field.null or field.has_default() or not field.editable or is_secret
    return {
        "label": capfirst(str(field.verbose_name)),
        "type": type_name,
        "reference_table_id": tables[target].pk if target else None,
        "mandatory": not is_optional,
        "is_unique": field.unique or any(rule.fields == (name,) for rule in model._meta.total_unique_constraints),
        "read_only": not field.editable,
        "default_value": "" if is_secret else _default_text(field),
        "max_length": field.max_length if COLUMN_TYPES[type_name].has_max_length else None,
        "is_display": model.display_column == name,
        "physical_name": field.column,
    }


def _type_of(model: type[Record], field: Any) -> tuple[str, str | None]:
    """Return the column type and the name of the referenced table."""
    if field.name in model.secret_columns:
        return "password" if field.name == "password" else "secret", None  # hashed, or encrypted
    if field.name in model.references:
        return "list" if isinstance(field, ArrayField) else "reference", model.references[field.name]
    if isinstance(field, models.ForeignKey):
        return "reference", field.related_model._meta.db_table
    if field.choices:
        return "choice", None
    for field_class in type(field).__mro__:
        if field_class.__name__ in TYPE_BY_FIELD_CLASS:
            return TYPE_BY_FIELD_CLASS[field_class.__name__], None
    raise TypeError(f"No column type fits the field {model.__name__}.{field.name}. Remove it from `table_columns`.")


def _default_text(field: Any) -> str:
    value = field.default if field.has_default() and not callable(field.default) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _update_choices(models_by_table: dict[str, type[Record]]) -> bool:
    has_changed = False
    choice_types = type_names_where(lambda row: row.has_choices)
    columns = Column.objects.filter(type__in=choice_types).exclude(physical_name="").select_related("table")
    for column in columns.prefetch_related("choices"):
        field: Any = models_by_table[column.table.name]._meta.get_field(column.name)
        expected_choices = [(str(value), str(label)) for value, label in field.choices]
        if [(choice.value, choice.label) for choice in column.choices.all()] != expected_choices:
            has_changed = True
            column.choices.all().delete()
            Choice.objects.bulk_create(
                Choice(column=column, value=value, label=label, position=position)
                for position, (value, label) in enumerate(expected_choices, 1)
            )
    return has_changed
