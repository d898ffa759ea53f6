"""In charge of what is doubtful about a rule's condition: it can be asked, but what it asks for is not there now.

Chosen: said to who saves the rule in the administration, not refused. A choice or a record may come later, and a rule
that names one that has gone still fails closed.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.db import connection
from psycopg import sql

from system.encoded_query import Condition, parse, read

from . import rules
from .catalogue import Catalogue, Table
from .resolve import RuleEyes

WITH_VALUES = frozenset({"=", "!=", "IN", "NOT IN", "HAS", "HASNOT"})


def of_condition(catalogue: Catalogue, table_name: str, text: str) -> Iterator[str]:
    """A sentence for each value that no record can have now."""
    for test in rules.tests(RuleEyes(catalogue), catalogue.tables[table_name], parse(text)):
        column, path = test.leaf.column, ".".join(test.condition.path)
        values = _values(test.condition)
        if column.type == "choice" and column.choices:
            known = {value for value, _ in column.choices}
            yield from (f"{value} is none of the choices of {path}." for value in values if value not in known)
        target = catalogue.tables.get(column.reference or "")
        if target is not None:
            there = _there(target, values)
            yield from (
                f"{path}: {target.name} has no record with the id {value}." for value in values if value not in there
            )


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
