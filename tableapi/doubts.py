"""In charge of what is doubtful about a rule or a query: it can stand, but gives much, or asks for what is not there.

Chosen: said to who saves a rule in the administration, and beside an empty list, not refused. A choice or a record may
come later, and a rule that names one that has gone still fails closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

from django.db import connection
from psycopg import sql

from system.encoded_query import Condition, parse, read

from . import rules
from .catalogue import Catalogue, Column, Table
from .resolve import Eyes, RuleEyes

if TYPE_CHECKING:
    from .models import Rule

# As this service and its family make them; others can be there, but a name is meant more often.
USUAL_ID = re.compile("[0-9]{18,32}|[0-9a-f]{32}")
MOST_TOLD = 20
LONGEST_TOLD = 100
WITH_VALUES = frozenset({"=", "!=", "IN", "NOT IN", "HAS", "HASNOT"})


def of_rule(rule: Rule) -> Iterator[str]:
    """What it gives to everybody, and which other rule gives the same or more."""
    if not rule.active:
        return
    if not (rule.table or rule.column_name or rule.roles or rule.condition):
        yield f"Everybody who is signed in may {rule.operation} the records of every designed table by this rule."
    about = {"table": rule.table, "column_name": rule.column_name, "operation": rule.operation, "active": True}
    for other in type(rule).objects.filter(**about).exclude(pk=rule.pk).select_related("table"):
        if set(other.roles) == set(rule.roles) and (other.condition == rule.condition or not other.condition):
            yield f"There is the access rule “{other}” already: this one adds nothing to it."


def of_condition(catalogue: Catalogue, table_name: str, text: str) -> Iterator[str]:
    """A sentence for each value that no record can have now."""
    for test in rules.tests(RuleEyes(catalogue), catalogue.tables[table_name], parse(text)):
        column, path = test.leaf.column, ".".join(test.condition.path)
        values = _values(test.condition)
        yield from (f"{value} is none of the choices of {path}." for value in values if not _is_choice(column, value))
        target = catalogue.tables.get(column.reference or "")
        if target is not None:
            there = _there(target, values)
            yield from (
                f"{path}: {target.name} has no record with the id {value}." for value in values if value not in there
            )


def of_query(eyes: Eyes, table: Table, text: str) -> str:
    """The value of X-Doubtful-Conditions: labels in place of choices, names in place of ids.

    It tells nothing of records, only what may stand in a column that the caller can ask for anyway.
    """
    found = [
        quote(f"{'.'.join(test.condition.path)}={value[:LONGEST_TOLD]}", safe="=")
        for test in rules.tests(eyes, table, parse(text))
        for value in _values(test.condition)
        if not _is_choice(test.leaf.column, value) or (test.leaf.column.reference and not USUAL_ID.fullmatch(value))
    ]
    return ",".join(found[:MOST_TOLD])


def _is_choice(column: Column, value: str) -> bool:
    return column.type != "choice" or not column.choices or value in {known for known, _ in column.choices}


def _values(condition: Condition) -> list[str]:
    """The values that stand there as text: what a function gives depends on the caller."""
    if condition.operator not in WITH_VALUES:
        return []
    found = read(condition)
    given = found if isinstance(found, tuple) else (found,)
    return [each for each in given if isinstance(each, str)]


def _there(target: Table, ids: list[str]) -> set[str]:
    query = sql.SQL("SELECT sys_id FROM {} WHERE sys_id = ANY (%s)").format(sql.Identifier(target.schema, target.name))
    with connection.cursor() as cursor:
        cursor.execute(query, [ids])
        return {sys_id for (sys_id,) in cursor.fetchall()}
