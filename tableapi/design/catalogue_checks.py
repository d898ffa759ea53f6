"""Checks of rules and views that resolve columns through the catalogue.

Each check loads the catalogue from the database, because the table may have been created in the same transaction.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from django.core.exceptions import ValidationError
from django.utils.text import capfirst

from system.encoded_query import QueryError
from system.errors import BadRequest, InvalidInput
from tableapi.access import permissions
from tableapi.catalogue.definitions import Catalogue
from tableapi.database import catalogue_loader
from tableapi.models import Rule, SetRule, Table, View, ViewColumn
from tableapi.query import path_resolver, read_plan
from tableapi.query.path_resolver import RuleScope
from tableapi.values import column_values, defaults

_fixed_catalogue: ContextVar[Catalogue | None] = ContextVar("fixed_catalogue", default=None)


@contextmanager
def fixed_catalogue() -> Iterator[None]:
    """Load the catalogue once, for checks of many rules and views between which no table or column changes."""
    token = _fixed_catalogue.set(catalogue_loader.load())
    try:
        yield
    finally:
        _fixed_catalogue.reset(token)


def load_catalogue() -> Catalogue:
    return _fixed_catalogue.get() or catalogue_loader.load()


def check_rule(rule: Rule) -> None:
    if not rule.condition:
        return
    table = Table.objects.filter(pk=rule.table_id).first()
    try:
        permissions.check_condition(load_catalogue(), table.name if table else None, rule.condition)
    except QueryError as error:
        raise ValidationError({"condition": f"{capfirst(str(error))}."}) from None


def check_set_on_change_rule(rule: SetRule) -> None:
    if not rule.column_id or not rule.watched_id or rule.watched.table_id != rule.column.table_id:
        return  # reported by the other checks
    columns = load_catalogue().tables[rule.column.table.name].columns
    column, watched = columns[rule.column.name], columns[rule.watched.name]
    column_with_default = replace(column, default=rule.set_to)
    problems = {}
    if defaults.is_number_default(column_with_default):
        problems["set_to"] = "A rule cannot set record numbers."
    elif rule.set_to and (problem := defaults.find_problem(column_with_default)):
        problems["set_to"] = problem
    try:
        column_values.parse(watched, rule.value or None)
    except InvalidInput as error:
        problems["value"] = error.message
    if problems:
        raise ValidationError(problems)


def check_path_in_view(column: ViewColumn, path: str) -> None:
    """Refuse an invalid path for this column of a view. Responses omit a path that becomes invalid later."""
    previous = column.stored_record()
    if previous is not None and (previous.path, previous.view_id) == (path, column.view_id):
        return
    view = View.objects.select_related("table").filter(pk=column.view_id).first()
    if view is not None:  # otherwise reported by the field validation
        others = view.columns.exclude(pk=column.pk).values_list("path", flat=True)
        _check_paths(view.table, path, tuple(others))


def _check_paths(table: Table, path: str, others: tuple[str, ...]) -> None:
    """Also refuse a view that needs too many joins, because every request with it would be refused."""
    catalogue = load_catalogue()
    scope, definition = RuleScope(catalogue), catalogue.tables[table.name]
    if path_resolver.resolve_path(scope, definition, tuple(path.split("."))) is None:
        raise ValidationError({"path": f"“{path}” is not a valid path from {table.name}."})
    try:
        read_plan.plan_read(scope, definition, fields=(*others, path))
    except BadRequest as error:
        raise ValidationError({"path": error.message}) from None
