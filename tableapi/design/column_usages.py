"""Finds what asks for a column: the rules and views that are no longer what they were when it goes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from system.encoded_query import Query, QueryError, ValueKind
from system.errors import BadRequest
from tableapi.access import permissions
from tableapi.access.permissions import ANY_TABLE
from tableapi.catalogue.definitions import Catalogue, Column, Rule, Table
from tableapi.query.expressions import ResolvedPath
from tableapi.query.path_resolver import RuleScope, resolve_path

# The name of a table's view, as the catalogue has it.
ViewName = tuple[str, str]


class ColumnUsage(Enum):
    """What a rule has to do with a column: is about it, asks for it or for what is behind it, searches its words."""

    ABOUT = "about"
    ASKS = "asks"
    SEARCHES = "searches"


def by_rules(catalogue: Catalogue, column: Column) -> Iterator[tuple[Rule, ColumnUsage]]:
    """Each rule once, with what weighs most: without what it asks for, a rule holds for no record."""
    places = (*catalogue.tables[column.owner].family, ANY_TABLE)
    for rule in catalogue.rules:
        found = set() if rule.is_broken else set(_asked(catalogue, rule, column))
        if rule.column == column.name and rule.table in places:
            found.add(ColumnUsage.ABOUT)
        first = next((how for how in (ColumnUsage.ASKS, ColumnUsage.SEARCHES, ColumnUsage.ABOUT) if how in found), None)
        if first is not None:
            yield rule, first


def by_views(catalogue: Catalogue, column: Column) -> Iterator[ViewName]:
    scope = RuleScope(catalogue)
    for (table, name), paths in catalogue.views.items():
        ways = (path.split(".") for path in paths if column.name in path)
        found = (resolve_path(scope, catalogue.tables[table], tuple(way)) for way in ways)
        if any(column.id in _columns(each) for each in found if each is not None):
            yield table, name


def _asked(catalogue: Catalogue, rule: Rule, column: Column) -> Iterator[ColumnUsage]:
    query = rule.query
    has_words = any(condition.row.kind is ValueKind.WORDS for condition in query.conditions())
    if column.name not in rule.condition and not has_words:
        return  # most of them: what follows reads the condition for every table it may hold for
    for name in catalogue.tables[rule.table].family if rule.table else tuple(catalogue.tables):
        yield from _asked_in(catalogue.tables[name], catalogue, query, column)


def _asked_in(table: Table, catalogue: Catalogue, query: Query, column: Column) -> Iterator[ColumnUsage]:
    try:
        for predicate in permissions.predicates_in(RuleScope(catalogue), table, query):
            if column.id in _columns(predicate.path) | (_columns(predicate.other) if predicate.other else set()):
                yield ColumnUsage.ASKS
            if any(column.id in _columns(each) for each in predicate.searched):
                yield ColumnUsage.SEARCHES
    except (QueryError, BadRequest):
        return  # it does not fit this table


def _columns(found: ResolvedPath) -> set[str]:
    return {found.column.id, *(step.column.id for step in found.steps)}
