"""Faults that can be switched on: each lets something through that a caller may not read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any
from unittest.mock import patch

from django.db import connection

from system.errors import AccessDenied, BadRequest, Conflict, NotFound
from tableapi import (
    answers,
    checks,
    conditions,
    cursors,
    plan,
    reading,
    references,
    resolve,
    standing,
    statements,
    writing,
)
from tableapi.catalogue import Table
from tableapi.expressions import ALWAYS, AnyOf, Hop, Leaf
from tableapi.resolve import RuleEyes
from tableapi.rules import Rights

Leak = Callable[[ExitStack], None]
# Its name → the fault, and how it shows: between two databases, or between a hidden column and a missing one.
LEAKS: dict[str, tuple[Leak, str]] = {}


def leak(by: str = "pairs") -> Callable[[Leak], Leak]:
    def add(found: Leak) -> Leak:
        LEAKS[found.__name__] = (found, by)
        return found

    return add


@contextmanager
def switched_on(name: str) -> Iterator[None]:
    with ExitStack() as stack:
        LEAKS[name][0](stack)
        yield


def instead(stack: ExitStack, where: Any, name: str, wrap: Callable[..., Any]) -> None:
    """`wrap` stands there; it gets the right function first, then what that would get."""
    right = getattr(where, name)

    def wrong(*positional: Any, **named: Any) -> Any:
        return wrap(right, *positional, **named)

    stack.enter_context(patch.object(where, name, wrong))


def with_open_eyes(right: Any, eyes: Any, *rest: Any, **named: Any) -> Any:
    return right(RuleEyes(eyes.catalogue), *rest, **named)


def unguarded(leaf: Leaf) -> Leaf:
    return replace(leaf, guard=ALWAYS)


def count_of(table: Table, sys_id: str = "") -> int:
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM records."{table.name}" WHERE sys_id = %s OR %s', [sys_id, not sys_id])
        return int(cursor.fetchone()[0])


# Columns.


@leak()
def a_filter_takes_every_column(stack: ExitStack) -> None:
    instead(stack, plan, "expression", with_open_eyes)


@leak()
def a_filter_looks_past_the_guard_of_a_column(stack: ExitStack) -> None:
    def condition(right: Any, self: Any, found: Any) -> list[str]:
        if not found:
            return []
        return [conditions.expression(self.text, found, self.anchor, lambda leaf: raw(self, leaf))]

    def raw(scope: Any, leaf: Leaf) -> str:
        return str(scope.reach(leaf.hops).column(leaf.column))

    instead(stack, statements.Scope, "condition", condition)


@leak()
def sorting_takes_every_column(stack: ExitStack) -> None:
    instead(stack, plan, "_order", with_open_eyes)


@leak()
def sorting_looks_past_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(
        stack,
        statements,
        "_sort_key",
        lambda right, scope, sort: right(scope, replace(sort, leaf=unguarded(sort.leaf))),
    )


@leak()
def without_a_sort_the_name_decides_the_order(stack: ExitStack) -> None:
    def order(right: Any, eyes: Any, table: Table, query: Any) -> Any:
        return right(eyes, table, query) or (plan.Sort(Leaf((), table.columns["name"]), False),)

    instead(stack, plan, "_order", order)


@leak()
def answers_show_every_column(stack: ExitStack) -> None:
    instead(stack, plan, "_output", with_open_eyes)


@leak()
def answers_look_past_the_guard_of_a_column(stack: ExitStack) -> None:
    instead(stack, answers, "field", lambda right, text, style, output, anchor: right(
        text, style, replace(output, leaf=unguarded(output.leaf)), anchor))  # fmt: skip


@leak()
def a_view_shows_every_column(stack: ExitStack) -> None:
    instead(stack, plan, "_outputs", lambda right, eyes, table, fields, view: right(
        RuleEyes(eyes.catalogue) if view is not None and not fields else eyes, table, fields, view))  # fmt: skip


@leak()
def words_are_searched_in_every_column(stack: ExitStack) -> None:
    instead(stack, resolve, "_searchable", with_open_eyes)


@leak()
def the_other_column_of_a_comparison_is_not_guarded(stack: ExitStack) -> None:
    instead(stack, resolve, "_other", with_open_eyes)


@leak()
def a_record_is_called_by_a_name_that_is_hidden(stack: ExitStack) -> None:
    instead(stack, plan, "display_leaf", lambda right, eyes, column: (
        found := right(RuleEyes(eyes.catalogue), column)) and replace(found, hops=right_hops(eyes, found)))  # fmt: skip


def right_hops(eyes: Any, found: Leaf) -> tuple[Hop, ...]:
    return tuple(replace(hop, records=eyes.records(hop.target)) for hop in found.hops)


@leak()
def the_tag_is_made_of_every_column(stack: ExitStack) -> None:
    def record(right: Any, request: Any, table: Table, sys_id: str, shown: Any) -> Any:
        found = right(request, table, sys_id, shown)
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT t::text FROM records."{table.name}" t WHERE sys_id = %s', [sys_id])
            text = cursor.fetchone()[0]
        return replace(found, version=int(hashlib.sha256(text.encode()).hexdigest()[:6], 16))

    instead(stack, reading, "record", record)


# Records.


@leak()
def a_list_has_every_record(stack: ExitStack) -> None:
    instead(
        stack, statements, "_page", lambda right, text, read, *rest: right(text, replace(read, records=ALWAYS), *rest)
    )


@leak()
def a_record_is_found_by_its_id_whatever_the_rules(stack: ExitStack) -> None:
    instead(stack, statements, "record", lambda right, read, style: right(replace(read, records=ALWAYS), style))


@leak()
def hidden_records_are_counted(stack: ExitStack) -> None:
    instead(stack, statements, "counted", lambda right, read, *rest: right(replace(read, records=ALWAYS), *rest))


@leak()
def an_or_leads_past_the_rule(stack: ExitStack) -> None:
    def read(right: Any, *positional: Any, **named: Any) -> Any:
        found = right(*positional, **named)
        return replace(found, records=ALWAYS) if isinstance(found.where, AnyOf) else found

    instead(stack, plan, "read", read)


@leak()
def a_walk_ends_at_every_record(stack: ExitStack) -> None:
    instead(
        stack,
        statements.Scope,
        "_join",
        lambda right, self, anchor, hop: right(self, anchor, replace(hop, records=ALWAYS)),
    )


@leak()
def a_walk_begins_at_every_reference(stack: ExitStack) -> None:
    instead(
        stack,
        statements.Scope,
        "_join",
        lambda right, self, anchor, hop: right(self, anchor, replace(hop, guard=ALWAYS)),
    )


@leak()
def hidden_records_have_a_display_value(stack: ExitStack) -> None:
    def called(right: Any, text: Any, display: Leaf | None, reference: str) -> Any:
        open_ = display and replace(display, hops=tuple(replace(hop, records=ALWAYS) for hop in display.hops))
        return right(text, open_, reference)

    instead(stack, answers, "_called", called)


@leak()
def a_link_stands_only_where_a_record_is(stack: ExitStack) -> None:
    def linked(right: Any, text: Any, column: Any, stored: str) -> str:
        link = str(right(text, column, stored))
        if column.is_sys:
            return link
        return f"CASE WHEN EXISTS (SELECT FROM records.{column.reference} WHERE sys_id = {stored}) THEN {link} END"

    instead(stack, answers, "_linked", linked)


@leak()
def children_are_read_by_the_rules_of_their_parent(stack: ExitStack) -> None:
    instead(stack, Rights, "_record_outcome", lambda right, self, operation, own: right(
        self, operation, self.catalogue.tables[own.lineage[-1]]))  # fmt: skip


@leak()
def there_is_more_when_the_table_has_more(stack: ExitStack) -> None:
    def records(right: Any, request: Any, table: Table, asked: Any) -> Any:
        found = right(request, table, asked)
        return replace(
            found, next_page=found.next_page or {"sysparm_cursor": "0"} if count_of(table) > asked.limit else {}
        )

    instead(stack, reading, "records", records)


@leak()
def the_cursor_says_how_many_records_there_are(stack: ExitStack) -> None:
    def write(right: Any, keys: Any, bound_to: Any) -> str:
        with connection.cursor() as cursor:
            cursor.execute(f'SELECT count(*) FROM records."{bound_to[0]}"')
            return f"{right(keys, bound_to)}{cursor.fetchone()[0]}"

    instead(stack, cursors, "write", write)


@leak()
def reading_a_hidden_record_is_forbidden_and_not_missing(stack: ExitStack) -> None:
    instead(stack, reading, "record", partial(forbidden, lambda request, table, sys_id, shown: (table, sys_id)))


@leak()
def changing_a_hidden_record_is_forbidden_and_not_missing(stack: ExitStack) -> None:
    instead(stack, standing, "ask", partial(forbidden, lambda change, sys_id, *rest: (change.table, sys_id)))


def forbidden(place: Callable[..., tuple[Table, str]], right: Any, *positional: Any) -> Any:
    try:
        return right(*positional)
    except NotFound:
        if count_of(*place(*positional)):
            raise AccessDenied from None
        raise


# Writes.


@leak()
def a_reference_to_a_hidden_record_is_taken(stack: ExitStack) -> None:
    class Everything:
        def records(self, operation: str, table: Table) -> Any:
            return ALWAYS

    instead(stack, checks, "there", lambda right, rights, target, **named: right(Everything(), target, **named))


@leak()
def a_hidden_value_sent_as_it_stands_counts_as_unchanged(stack: ExitStack) -> None:
    instead(stack, writing, "_changed", lambda right, change, column, value, stored, **named: right(
        change, column, value, replace(stored, is_seen=True), **named))  # fmt: skip


@leak()
def a_record_that_is_replaced_loses_what_is_hidden(stack: ExitStack) -> None:
    def left_out(right: Any, table: Table, sent: Any, stand: Any) -> Any:
        return right(table, sent, replace(stand, columns={
            column: replace(stored, is_seen=True) for column, stored in stand.columns.items()}))  # fmt: skip

    instead(stack, writing, "_left_out", left_out)


@leak()
def a_write_answers_every_column(stack: ExitStack) -> None:
    def prepare(right: Any, change: Any) -> Any:
        with patch.object(plan, "_output", partial(with_open_eyes, plan._output)):
            return right(change)

    instead(stack, writing, "_prepare_answer", prepare)


@leak()
def a_deletion_tells_of_hidden_references(stack: ExitStack) -> None:
    def release(right: Any, catalogue: Any, table: Table, sys_id: str) -> None:
        for column in catalogue.referring_to(table):
            if column.type == "reference":
                with connection.cursor() as cursor:
                    cursor.execute(
                        f'SELECT count(*) FROM records."{column.owner}" WHERE "{column.name}" = %s', [sys_id]
                    )
                    (count,) = cursor.fetchone()
                if count:
                    raise Conflict(f"{count} records of {column.owner} need this one.", code="referenced")
        right(catalogue, table, sys_id)

    instead(stack, references, "release", release)


# A hidden column that is not like a missing one.


@leak(by="names")
def the_message_for_a_hidden_column_is_another(stack: ExitStack) -> None:
    def leaf(right: Any, eyes: Any, table: Table, path: tuple[str, ...]) -> Any:
        found = right(eyes, table, path)
        if found is None and right(RuleEyes(eyes.catalogue), table, path):
            raise BadRequest(f"You may not read {'.'.join(path)}.", code="unknown_field", field=".".join(path))
        return found

    instead(stack, resolve, "leaf", leaf)


@leak(by="names")
def ignored_names_are_named_when_they_exist(stack: ExitStack) -> None:
    def read(right: Any, eyes: Any, table: Table, **named: Any) -> Any:
        found = right(eyes, table, **named)
        return replace(found, ignored=tuple(name for name in found.ignored if name.split(".")[0] in table.columns))

    instead(stack, plan, "read", read)


@leak(by="names")
def only_a_known_column_in_a_body_is_forbidden(stack: ExitStack) -> None:
    instead(stack, Rights, "is_known", lambda right, self, table, column: True)


@leak(by="names")
def a_hidden_column_is_left_out_in_silence(stack: ExitStack) -> None:
    def outputs(right: Any, eyes: Any, table: Table, fields: tuple[str, ...], view: Any) -> Any:
        kept = tuple(each for each in fields if each not in table.columns or eyes.column(table, each))
        return right(eyes, table, kept or fields, view)

    instead(stack, plan, "_outputs", outputs)
