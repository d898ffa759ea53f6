"""The tables that can be designed, and their deletion."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Count, Q, QuerySet

from tableapi.ddl import schema_editor
from tableapi.design import change_costs
from tableapi.models import Table
from tableapi.models.validation import check_table_deletion


def find_tables(text: str) -> "QuerySet[Table, Any]":
    matches = Q(name__icontains=text) | Q(label__icontains=text)
    tables = Table.objects.filter(matches).annotate(column_count=Count("columns"))
    return tables.select_related("parent").order_by("is_system", "label", "name")


def deletion_of(table: Table) -> dict[str, Any]:
    """Why the table cannot be deleted, or what its deletion costs."""
    try:
        check_table_deletion(table)
    except ValidationError as error:
        return {"reason": " ".join(error.messages), "has_records": schema_editor.has_records(table)}
    return {"costs": list(change_costs.costs_of_table_deletion(table))}


def delete_table(table: Table) -> str:
    """Delete the table, or return why it cannot be deleted."""
    try:
        table.delete()
    except ValidationError as error:
        return " ".join(error.messages)
    return ""
