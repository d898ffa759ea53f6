"""Hints about a valid rule that grants very broad access, is redundant, or names values that do not exist.

They are shown when an administrator saves the rule and do not prevent saving: a choice or record may be added later,
and a rule that names a missing one fails closed.
"""

from collections.abc import Iterator

from psycopg import sql

from system.encoded_query import Condition, parse, read_value
from system.plain_sql import fetch_rows
from tableapi.access import permissions
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.models import Rule
from tableapi.query.path_resolver import RuleScope

VALUE_OPERATORS = frozenset({"=", "!=", "IN", "NOT IN", "HAS", "HASNOT"})


def rule_hints(rule: Rule) -> Iterator[str]:
    """Warn if the rule grants access to every user, or if another rule already grants the same or more."""
    if not rule.active:
        return
    if not (rule.table or rule.column_name or rule.roles or rule.condition):
        yield f"This rule lets every signed-in user {rule.operation} the records of every designed table."
    others = Rule.objects.filter(table=rule.table, column_name=rule.column_name, operation=rule.operation, active=True)
    for other in others.exclude(pk=rule.pk).select_related("table"):
        grants_as_much = other.condition in ("", rule.condition) and (other.admin_overrides or not rule.admin_overrides)
        if grants_as_much and set(other.roles) == set(rule.roles):
            yield f"The access rule “{other}” already grants the same access or more."
            return


def condition_hints(catalogue: Catalogue, table_name: str, text: str) -> Iterator[str]:
    """Yield a warning for each value that no record can have."""
    for predicate in permissions.predicates_in(RuleScope(catalogue), catalogue.tables[table_name], parse(text)):
        column, path = predicate.path.column, ".".join(predicate.condition.path)
        values = _literal_values(predicate.condition)
        if column.choices:
            choices = dict(column.choices)
            yield from (f"“{value}” is not a choice of {path}." for value in values if value not in choices)
        target = catalogue.tables.get(column.reference or "")
        if target is not None:
            existing = _existing_ids(target, values)
            yield from (
                f"{path}: {target.name} has no record with ID “{value}”." for value in values if value not in existing
            )


def _literal_values(condition: Condition) -> list[str]:
    """The literal values of a condition, without functions, whose result depends on the caller."""
    if condition.operator not in VALUE_OPERATORS:
        return []
    operand = read_value(condition)
    operands = operand if isinstance(operand, tuple) else (operand,)
    return [value for value in operands if isinstance(value, str)]


def _existing_ids(target: Table, ids: list[str]) -> set[str]:
    query = sql.SQL("SELECT sys_id FROM {} WHERE sys_id = ANY (%s)").format(sql.Identifier(target.schema, target.name))
    return {sys_id for (sys_id,) in fetch_rows(query, [ids])}
