"""Says what a change of a table's design costs, before it is made: records that lose values, rules that stop matching,
indexes that are built. A change that costs nothing yields nothing."""

from collections.abc import Iterator

from django.template.defaultfilters import pluralize

from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.design import column_usages
from tableapi.models import Choice, Column, Rule, SetRule, Table

# Smaller tables are compared and indexed within a moment.
LARGE_TABLE_RECORDS = 10_000
OPTIONS = ("mandatory", "is_unique", "is_indexed", "is_display")


def costs_of_number_prefix(table: Table) -> Iterator[str]:
    others = Table.objects.filter(number_prefix=table.number_prefix).exclude(pk=table.pk).exclude(number_prefix="")
    for other in others[:1]:
        yield f"{other.name} has the same number prefix, {table.number_prefix}. Two records can get the same number."


def costs_of_saving(column: Column, previous: Column | None) -> Iterator[str]:
    """The costs of a column that is added (without `previous`) or changed."""
    if not column.is_designed:
        return
    label = column.label or column.name
    gained = {name for name in OPTIONS if getattr(column, name) and not getattr(previous, name, False)}
    if "mandatory" in gained:
        filled = schema_editor.count_values(previous) if previous else 0
        if empty := schema_editor.count_records(column.table) - filled:
            yield f"{_records(empty)} without a value in “{label}” must get one when they are saved."
    is_new_type = previous is not None and column.type != previous.type
    if schema_editor.has_more_records(column.table, LARGE_TABLE_RECORDS):
        records = _records(schema_editor.count_records(column.table))
        if "is_unique" in gained:
            yield f"The values of “{label}” are compared in {records}. Until that ends, writes to the table wait."
        if is_new_type or gained & {"is_indexed", "is_display"}:
            yield f"An index of “{label}” is built in the background, over {records}. Until then, queries are slower."
    if previous is not None:
        yield from _costs_of_change(column, previous, label)


def _costs_of_change(column: Column, previous: Column, label: str) -> Iterator[str]:
    if column.type != previous.type and previous.type not in column.column_type.convertible_types:
        yield f"“{label}” cannot be changed back from {column.get_type_display()} to {previous.get_type_display()}."
    maximum = column.max_length
    is_shorter = maximum is not None and (previous.max_length is None or maximum < previous.max_length)
    if maximum and is_shorter and schema_editor.has_longer_text(previous, maximum):
        yield f"Some texts in “{label}” have more than {maximum:,} characters. They can no longer be saved as they are."


def costs_of_deletion(column: Column) -> Iterator[str]:
    label = column.label or column.name
    values = schema_editor.count_values(column)
    yield f"“{label}” is deleted, with its values in {_records(values)}." if values else f"“{label}” is deleted."
    deleted_rules = Rule.for_column(column)
    for rule in deleted_rules:
        yield f"The access rule “{rule}” is deleted with “{label}”."
    for set_rule in SetRule.objects.filter(column=column) | SetRule.objects.filter(watched=column):
        yield f"The automatic value “{set_rule}” is deleted with “{label}”."
    catalogue = catalogue_loader.reload_if_changed()
    definition = catalogue.tables[column.table.name].columns[column.name]
    usages = {rule.id: usage for rule, usage in column_usages.rules_using(catalogue, definition)}
    remaining = Rule.objects.filter(pk__in=usages).exclude(pk__in=deleted_rules.values("pk")).select_related("table")
    for rule in remaining:
        yield f"The access rule “{rule}” stays, {usages[rule.pk].value}."
    for table, name in column_usages.views_using(catalogue, definition):
        yield f"The view “{name}” of {table} no longer shows “{label}”."


def costs_of_choice_deletion(choice: Choice) -> Iterator[str]:
    if count := schema_editor.count_values(choice.column, choice.value):
        label = choice.column.label
        yield f"{_records(count)} will have the value “{choice.value}”, which is no longer a choice of “{label}”."


def costs_of_table_deletion(table: Table) -> Iterator[str]:
    parts = (("column", table.columns), ("view", table.views), ("access rule", table.rules))
    counts = [f"{count} {name}{pluralize(count)}" for name, records in parts if (count := records.count())]
    yield f"{table.label} is deleted, with its design: {', '.join(counts) or 'nothing else'}."


def _records(count: int) -> str:
    return f"{count:,} record{pluralize(count)}"
