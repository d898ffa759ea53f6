"""Finds the rules and views that use a column and would change if it were deleted. Pure."""

from collections.abc import Iterator
from contextlib import suppress
from enum import Enum

from system.encoded_query import QueryError, ValueKind
from system.errors import BadRequest
from tableapi.access import permissions
from tableapi.access.permissions import ANY_TABLE
from tableapi.catalogue.definitions import Catalogue, Column, Rule
from tableapi.query.expressions import ResolvedPath
from tableapi.query.path_resolver import RuleScope, resolve_path


class ColumnUsage(Enum):
    """How a rule uses a column, and what its deletion changes. The most important usage is first."""

    CONDITION = "whose condition uses this column and will no longer match any record"
    SEARCH = "whose word search will no longer cover this column"
    SUBJECT = "which applies to this column"


def rules_using(catalogue: Catalogue, column: Column) -> Iterator[tuple[Rule, ColumnUsage]]:
    """Yield each rule once, with its most important usage. A rule whose condition loses a column matches no record."""
    table_names = (*catalogue.tables[column.owner].family, ANY_TABLE)
    for rule in catalogue.rules:
        usages = set() if rule.is_broken else set(_rule_usages(catalogue, rule, column))
        if rule.column == column.name and rule.table in table_names:
            usages.add(ColumnUsage.SUBJECT)
        first = next((usage for usage in ColumnUsage if usage in usages), None)
        if first is not None:
            yield rule, first


def views_using(catalogue: Catalogue, column: Column) -> Iterator[tuple[str, str]]:
    """Yield the table and name of each view that uses the column."""
    scope = RuleScope(catalogue)
    for (table, name), entries in catalogue.views.items():
        candidate_paths = (path.split(".") for path, _ in entries if column.name in path)
        resolved_paths = (resolve_path(scope, catalogue.tables[table], tuple(path)) for path in candidate_paths)
        if any(column.id in _column_ids(path) for path in resolved_paths if path is not None):
            yield table, name


def _rule_usages(catalogue: Catalogue, rule: Rule, column: Column) -> Iterator[ColumnUsage]:
    query = rule.query
    has_words = any(condition.row.kind is ValueKind.WORDS for condition in query.conditions())
    if column.name not in rule.condition and not has_words:
        return  # skips most rules; other conditions are resolved for every table they may apply to
    for name in catalogue.tables[rule.table].family if rule.table else tuple(catalogue.tables):
        with suppress(QueryError, BadRequest):  # the condition is invalid for this table
            for predicate in permissions.predicates_in(RuleScope(catalogue), catalogue.tables[name], query):
                if any(path and column.id in _column_ids(path) for path in (predicate.path, predicate.other)):
                    yield ColumnUsage.CONDITION
                if any(column.id in _column_ids(path) for path in predicate.searched_paths):
                    yield ColumnUsage.SEARCH


def _column_ids(path: ResolvedPath) -> set[str]:
    return {path.column.id, *(step.column.id for step in path.steps)}
