"""Leaks that make hidden columns differ from missing ones."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from system.errors import BadRequest
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import Table
from tableapi.query import path_resolver, read_plan
from tableapi.query.path_resolver import RuleScope
from tests.tableapi.noninterference.leaks.switch import leak, replace_function


@leak("B19", finder="names")
def message_for_a_hidden_column_differs(stack: ExitStack) -> None:
    def reveal_hidden_column(original: Any, scope: Any, table: Table, path: tuple[str, ...]) -> Any:
        resolved_path = original(scope, table, path)
        if resolved_path is None and original(RuleScope(scope.catalogue), table, path):
            raise BadRequest(f"You may not read {'.'.join(path)}.", code="unknown_field", field=".".join(path))
        return resolved_path

    replace_function(stack, path_resolver, "resolve_path", reveal_hidden_column)


@leak("B07", finder="names")
def ignored_fields_reveal_existing_columns(stack: ExitStack) -> None:
    def list_existing_names(original: Any, scope: Any, table: Table, **kwargs: Any) -> Any:
        plan = original(scope, table, **kwargs)
        return replace(plan, ignored=tuple(name for name in plan.ignored if name.split(".")[0] in table.columns))

    replace_function(stack, read_plan, "plan_read", list_existing_names)


@leak("B29", finder="names")
def hidden_column_in_a_body_is_forbidden_and_not_unknown(stack: ExitStack) -> None:
    replace_function(stack, Permissions, "can_see_column", lambda original, self, table, column: True)


@leak("B08", finder="names")
def hidden_column_is_omitted_silently(stack: ExitStack) -> None:
    def omit_hidden_fields(original: Any, scope: Any, table: Table, fields: tuple[str, ...], view: Any) -> Any:
        visible_fields = tuple(field for field in fields if field not in table.columns or scope.column(table, field))
        return original(scope, table, visible_fields or fields, view)

    replace_function(stack, read_plan, "_output_fields", omit_hidden_fields)
