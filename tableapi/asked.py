"""Finds what asks for a column: the rules and views that are no longer what they were when it goes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from system.encoded_query import Query, QueryError, parse
from system.errors import BadRequest

from . import rules
from .catalogue import Catalogue, Column, Rule, Table
from .expressions import Leaf
from .resolve import RuleEyes, leaf

# The name of a table's view, as the catalogue has it.
ViewName = tuple[str, str]


def by_rules(catalogue: Catalogue, column: Column) -> Iterator[Rule]:
    """Those about this column, and those whose condition asks for it or for something behind it."""
    family = catalogue.tables[column.owner].family
    for rule in catalogue.rules:
        is_about = rule.column == column.name and rule.table in family
        if is_about or (not rule.is_broken and _is_asked(catalogue, rule, column)):
            yield rule


def by_views(catalogue: Catalogue, column: Column) -> Iterator[ViewName]:
    eyes = RuleEyes(catalogue)
    for (table, name), paths in catalogue.views.items():
        ways = (path.split(".") for path in paths if column.name in path)
        found = (leaf(eyes, catalogue.tables[table], tuple(way)) for way in ways)
        if any(column.id in _columns(each) for each in found if each is not None):
            yield table, name


def _is_asked(catalogue: Catalogue, rule: Rule, column: Column) -> bool:
    if column.name not in rule.condition:
        return False  # most of them: what follows reads the condition for every table it may hold for
    query = parse(rule.condition)
    names = catalogue.tables[rule.table].family if rule.table else tuple(catalogue.tables)
    return any(column.id in found for name in names for found in _asked(catalogue.tables[name], catalogue, query))


def _asked(table: Table, catalogue: Catalogue, query: Query) -> Iterator[set[str]]:
    try:
        for test in rules.tests(RuleEyes(catalogue), table, query):
            yield _columns(test.leaf) | (_columns(test.other) if test.other else set())
    except (QueryError, BadRequest):
        return  # it does not fit this table


def _columns(found: Leaf) -> set[str]:
    return {found.column.id, *(hop.column.id for hop in found.hops)}
