"""Validates tables, columns and choices before they are saved or deleted.

The checks that need the catalogue are in `design.catalogue_checks`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.apps import apps
from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db.models import Q

from system.records import custom_columns
from tableapi.catalogue import definitions
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.catalogue.definitions import EXTENSIBLE_TABLES, NUMBER_COLUMN, OWN_TABLE_COLUMN, SYS_COLUMNS
from tableapi.ddl import schema_editor
from tableapi.values import defaults

if TYPE_CHECKING:
    from tableapi.models.tables import Choice, Column, Table

RESERVED_PREFIXES = ("sys_", "svc_")
# Names of PostgreSQL's system columns.
POSTGRESQL_SYSTEM_COLUMNS = frozenset({"tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"})
MAX_NUMBER_LENGTH = 40
CHOICES_UNCHANGEABLE = "The product defines this column, so its choices cannot be changed."
MAX_LENGTH_NEEDS_TEXT = "Only text can have a maximum length. It must be at least 1."


def check_table(table: Table) -> None:
    previous = table.stored_record()
    if schema_editor.is_product_change():
        return
    if table.is_system or (previous is not None and previous.is_system):
        options = ("number_prefix", "deferred_create")
        if previous is None or any(getattr(table, name) != getattr(previous, name) for name in options):
            raise ValidationError("Only the label of a product table can be changed.")
        return
    if previous is None and table.name.startswith(RESERVED_PREFIXES):
        raise ValidationError({"name": "Names that start with sys_ or svc_ are reserved."})
    parent = type(table).objects.filter(pk=table.parent_id).first()
    if parent is not None and parent.is_system:
        raise ValidationError({"parent": "Product tables cannot be extended."})


def check_table_deletion(table: Table) -> None:
    if table.is_system and not schema_editor.is_product_change():
        raise ValidationError("Product tables cannot be deleted.")
    if table.children.exists():
        raise ValidationError(f"{table.name} is the parent of other tables. Delete those tables first.")
    referring = table.referring_columns.exclude(table=table).select_related("table").first()
    if referring is not None:
        raise ValidationError(f"{referring} refers to {table.name}. Delete that column first.")
    if not table.is_system and schema_editor.has_records(table):
        raise ValidationError(f"{table.name} has records. Delete those records first.")


def check_column(column: Column) -> None:
    table = apps.get_model("tableapi", "Table").objects.filter(pk=column.table_id).first()
    if table is None or column.type not in COLUMN_TYPES:
        return  # reported by the field validation
    previous = column.stored_record()
    if table.is_system and not schema_editor.is_product_change():
        if not column.is_designed or table.name not in EXTENSIBLE_TABLES:
            _check_only_label_changed(column, previous)
            return
        _check_custom_column(column)
    if previous is None:
        _check_name(column, table)
    elif column.type != previous.type:
        _check_new_type(column, previous)
    _check_reference_table(column)
    _check_options(column)
    _check_set_on_change_rules(column)
    _check_max_length(column)
    if previous is not None:
        _check_stored_lengths(column, previous)
    _check_default(column)


def _check_custom_column(column: Column) -> None:
    """Refuse unsupported types and options: the product creates records of these tables without custom values."""
    errors = {}
    if not column.name.startswith(custom_columns.PREFIX):
        errors["name"] = f"The name of a custom column of a product table must start with {custom_columns.PREFIX}."
    if column.column_type.is_write_only or column.column_type.is_html:
        label = column.get_type_display().lower()
        errors["type"] = f"A custom column of a product table cannot have the type {label}."
    for option in ("mandatory", "is_display", "default_value"):
        if getattr(column, option):
            errors[option] = "A custom column of a product table cannot have this option."
    if errors:
        raise ValidationError(errors)


def _check_only_label_changed(column: Column, previous: Column | None) -> None:
    fields = [field.attname for field in column._meta.concrete_fields if not field.name.startswith("sys_")]
    if previous is None:
        raise ValidationError("Columns cannot be added to this product table.")
    if any(getattr(column, name) != getattr(previous, name) for name in fields if name != "label"):
        raise ValidationError("The product defines this column, so only its label can be changed.")


def _check_name(column: Column, table: Table) -> None:
    name = column.name
    is_reserved = name.startswith(RESERVED_PREFIXES) and not schema_editor.is_product_change()
    if is_reserved or name in SYS_COLUMNS or name == OWN_TABLE_COLUMN:
        raise ValidationError({"name": "Names that start with sys_ or svc_ are reserved."})
    if name in POSTGRESQL_SYSTEM_COLUMNS:
        raise ValidationError({"name": "This name is reserved by the database. Choose another name."})
    relatives = [*table.lineage, *table.descendants]
    existing = type(column).objects.filter(table__in=relatives, name=name).select_related("table").first()
    if existing is not None:
        hint = "" if existing.table == table else " Tables that extend each other share their column names."
        raise ValidationError({"name": f"{existing.table.name} already has a column with this name.{hint}"})


def _check_new_type(column: Column, previous: Column) -> None:
    if column.type not in previous.column_type.convertible_types:
        raise ValidationError(
            {
                "type": f"{previous.type} cannot be changed to {column.type}, because every record would be rewritten. "
                "Create a column of the new type, copy the values, then delete this column."
            }
        )
    if column.column_type.is_html:
        column.converted_from_text = True


def _check_reference_table(column: Column) -> None:
    if column.column_type.has_target and column.reference_table_id is None:
        raise ValidationError({"reference_table": "Select the reference table."})
    if not column.column_type.has_target and column.reference_table_id is not None:
        raise ValidationError({"reference_table": "Only columns of type reference or list can have a reference table."})
    if column.reference_table and column.reference_table.name in definitions.HIDDEN_TABLES:
        raise ValidationError({"reference_table": "Columns cannot refer to this table."})


def _check_options(column: Column) -> None:
    label = column.get_type_display().lower()
    column_type = column.column_type
    for option, is_supported in (
        ("is_unique", column_type.can_be_unique),
        ("is_indexed", column_type.can_be_indexed),
        ("is_display", column_type.can_be_display),
    ):
        if getattr(column, option) and not is_supported:
            raise ValidationError({option: f"A column of type {label} cannot have this option."})
    if column.converted_from_text and not column_type.is_html:
        raise ValidationError({"converted_from_text": "Only columns of type formatted text can have this option."})


def _check_set_on_change_rules(column: Column) -> None:
    if column.is_new:
        return
    cannot_be_set = column.mandatory or column.is_unique or not column.column_type.can_be_watched
    if cannot_be_set and (rule := column.set_rules.first()):
        raise ValidationError(
            f"This column cannot be mandatory, unique or of this type, because a set-on-change rule sets it: {rule}."
        )
    if not column.column_type.can_be_watched and (rule := column.watching_rules.first()):
        raise ValidationError(f"This column cannot have this type, because a set-on-change rule watches it: {rule}.")


def _check_max_length(column: Column) -> None:
    limits = column.column_type.length_limits
    if limits is None:
        if column.max_length is not None:
            raise ValidationError({"max_length": MAX_LENGTH_NEEDS_TEXT})
    elif column.is_unique or column.is_indexed or column.is_display:
        default, maximum = limits
        column.max_length = column.max_length or default
        if column.max_length > maximum:
            problem = f"The maximum length of a unique, indexed or display column must not exceed {maximum:,}."
            raise ValidationError({"max_length": problem})


def _check_stored_lengths(column: Column, previous: Column) -> None:
    """Refuse stored texts that are too long, because a single one would prevent the index from being built."""
    names = ("is_unique", "is_indexed", "is_display")
    is_new_type = column.type != previous.type
    gains_index_option = any(getattr(column, name) and (is_new_type or not getattr(previous, name)) for name in names)
    if gains_index_option and column.max_length and schema_editor.has_longer_text(previous, column.max_length):
        problem = f"Some texts exceed the maximum length ({column.max_length:,}). Shorten those texts first."
        raise ValidationError({"max_length": problem})


def _check_default(column: Column) -> None:
    if not column.default_value:
        return
    choices = () if column.is_new else tuple(column.choices.values_list("value", "label"))
    if column.column_type.has_choices and not choices:
        return  # choices are saved after their column
    definition = definitions.Column(
        name=column.name,
        type=column.type,
        owner="",
        database_name="",
        default=column.default_value,
        reference=column.reference_table.name if column.reference_table else None,
        max_length=column.max_length,
        choices=choices,
    )
    if defaults.is_number_default(definition):
        _check_next_number(column)
    elif problem := defaults.find_problem(definition):
        raise ValidationError({"default_value": problem})


def _check_next_number(column: Column) -> None:
    if not column.table.number_prefix or not column.table.columns.filter(name=NUMBER_COLUMN).exists():
        message = "Only tables with a number prefix and a number column of their own have a next number."
        raise ValidationError({"default_value": message})
    if column.max_length is not None and column.max_length < MAX_NUMBER_LENGTH:
        raise ValidationError({"max_length": f"Must be at least {MAX_NUMBER_LENGTH} to fit every record number."})


def check_column_deletion(column: Column) -> None:
    if not column.is_designed and not schema_editor.is_product_change():
        raise ValidationError("Only custom columns of a product table can be deleted.")
    relatives = [column.table, *column.table.descendants]
    if column.name == NUMBER_COLUMN and any(table.number_prefix for table in relatives):
        raise ValidationError(
            "This column holds the record numbers. First remove the number prefix of its table and of the tables that "
            "extend it."
        )


def check_choice(choice: Choice) -> None:
    try:
        column = choice.column
    except ObjectDoesNotExist:
        return  # reported by the field validation
    if schema_editor.is_product_change():
        return
    if not column.is_designed:
        raise ValidationError(CHOICES_UNCHANGEABLE)
    if not column.column_type.has_choices:
        raise ValidationError("Only columns of type choice can have choices.")
    previous = choice.stored_record()
    if "," in choice.value and (previous is None or previous.value != choice.value):
        raise ValidationError(
            {"value": "A value must not contain a comma, because the IN operator uses commas to separate values."}
        )
    if previous is not None and (previous.value, previous.column_id) != (choice.value, choice.column_id):
        _check_choice_is_unused(previous)


def check_choice_deletion(choice: Choice, *, with_column: bool) -> None:
    if schema_editor.is_product_change():
        return
    if not choice.column.is_designed:
        raise ValidationError(CHOICES_UNCHANGEABLE)
    if not with_column:
        _check_choice_is_unused(choice)


def _check_choice_is_unused(choice: Choice) -> None:
    """Refuse instead of warning, because new records would silently have no value."""
    if choice.column.default_value == choice.value:
        raise ValidationError(f"“{choice.value}” is the default value of {choice.column}. Change the default first.")
    uses_choice = Q(watched=choice.column, value=choice.value) | Q(column=choice.column, set_to=choice.value)
    if rule := apps.get_model("tableapi", "SetRule").objects.filter(uses_choice).first():
        raise ValidationError(f"A set-on-change rule uses “{choice.value}”: {rule}. Change that rule first.")
