"""Hidden columns that differ from missing ones."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from system.errors import BadRequest
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import Table
from tableapi.query import path_resolver, read_plan
from tableapi.query.path_resolver import RuleScope
from tests.tableapi.noninterference.leaks.switch import instead, leak


@leak("B19", by="names")
def the_message_for_a_hidden_column_differs(stack: ExitStack) -> None:
    def leaf(right: Any, eyes: Any, table: Table, path: tuple[str, ...]) -> Any:
        result = right(eyes, table, path)
        if result is None and right(RuleScope(eyes.catalogue), table, path):
            raise BadRequest(f"You may not read {'.'.join(path)}.", code="unknown_field", field=".".join(path))
        return result

    instead(stack, path_resolver, "resolve_path", leaf)


@leak("B07", by="names")
def ignored_names_are_named_when_they_exist(stack: ExitStack) -> None:
    def read(right: Any, eyes: Any, table: Table, **named: Any) -> Any:
        result = right(eyes, table, **named)
        return replace(result, ignored=tuple(name for name in result.ignored if name.split(".")[0] in table.columns))

    instead(stack, read_plan, "plan_read", read)


@leak("B29", by="names")
def only_a_known_column_in_a_body_is_forbidden(stack: ExitStack) -> None:
    instead(stack, Permissions, "is_known", lambda right, self, table, column: True)


@leak("B08", by="names")
def a_hidden_column_is_omitted_silently(stack: ExitStack) -> None:
    def outputs(right: Any, eyes: Any, table: Table, fields: tuple[str, ...], view: Any) -> Any:
        result = tuple(field for field in fields if field not in table.columns or eyes.column(table, field))
        return right(eyes, table, result or fields, view)

    instead(stack, read_plan, "_output_fields", outputs)
