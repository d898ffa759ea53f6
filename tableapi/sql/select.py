"""Writes the statements of reads: the page is found and ordered first, its records joined and shown after. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tableapi.query.expressions import Always, Decision, Expression, PathStep, ResolvedPath
from tableapi.query.read_plan import OutputField, ReadPlan, Sort
from tableapi.values.comparison import SQL_TYPES, comparison_kind

from . import output_fields, predicates
from .operators import key
from .output_fields import OutputStyle
from .statement_builder import Inputs, Parameter, StatementBuilder, TableAlias, literal, quoted

INDEXED_SYS = frozenset({"sys_id", "sys_created_at", "sys_updated_at"})
UNBOUNDED = frozenset({"text", "wysiwyg"})  # too long for an index that sorts
LONGEST_NAME = 63  # bytes; PostgreSQL cuts longer aliases


@dataclass(slots=True)
class Statement:
    """SQL text with numbered parameters, each with how its value is found when it runs."""

    sql: str
    parameters: Sequence[Parameter]
    _encoded: tuple[int, bytes] = (-1, b"")

    def values(self, inputs: Inputs) -> list[Any]:
        return [value(inputs) for value in self.parameters]

    def encoded(self, version: int) -> bytes:
        """Prepared under one version of the catalogue, a statement is never run under another: a column that was
        dropped and made anew may have another type. The same object each time, since the driver looks it up."""
        known, found = self._encoded
        if known != version:
            found = f"{self.sql} /* {version} */".encode()
            self._encoded = (version, found)
        return found


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list: `after` says of each key of the cursor whether it has a value."""

    limit: int
    has_offset: bool = False
    after: tuple[bool, ...] | None = None


class FromClause:
    """The FROM clause of a caller's query: a path's references join as far as the caller may follow them."""

    def __init__(self, text: StatementBuilder, read: ReadPlan) -> None:
        self.text = text
        self.anchor = TableAlias(text, read.table)
        self._joins: dict[tuple[str, ...], tuple[TableAlias, str]] = {}

    def value(self, leaf: ResolvedPath) -> str:
        anchor = self.reach(leaf.hops)
        return predicates.guarded(self.text, leaf.guard, anchor, anchor.column(leaf.column))

    def reach(self, hops: tuple[PathStep, ...]) -> TableAlias:
        """The records at the end of these references."""
        anchor = self.anchor
        way: tuple[str, ...] = ()
        for hop in hops:
            way = (*way, hop.column.name)
            if way not in self._joins:
                self._joins[way] = self._join(anchor, hop)
            anchor = self._joins[way][0]
        return anchor

    def _join(self, anchor: TableAlias, hop: PathStep) -> tuple[TableAlias, str]:
        reference = predicates.guarded(self.text, hop.guard, anchor, anchor.column(hop.column))
        target = TableAlias(self.text, hop.target)
        readable = predicates.decision(self.text, hop.records, target)
        condition = f" AND {readable}" if readable else ""
        return target, f"{target.sys_id()} = {reference}{condition}"

    def condition(self, found: Expression | None) -> list[str]:
        return [predicates.expression(self.text, found, self.anchor, self.value)] if found else []

    def readable(self, found: Decision) -> list[str]:
        condition = predicates.decision(self.text, found, self.anchor)
        return [condition] if condition else []

    def from_clause(self) -> str:
        return self.anchor.joined() + self.joins()

    def joins(self) -> str:
        return "".join(f" LEFT JOIN {target.enclosed()} ON {on}" for target, on in self._joins.values())


def record(read: ReadPlan, style: OutputStyle) -> Statement:
    """One record by its id: catalogue version, record version, JSON."""
    text = StatementBuilder()
    scope = FromClause(text, read)
    wanted = f"{scope.anchor.sys_id()} = {text.given('sys_id', 'varchar')}"
    where = [wanted, *scope.readable(read.records)]
    shown = _json(text, style, read.fields, scope)
    version = scope.value(read.version) if read.version else "NULL"
    found = f"SELECT {version} AS version, {shown} AS body FROM {scope.from_clause()} WHERE {' AND '.join(where)}"
    sql = f"SELECT s.version, r.version, r.body FROM public.tableapi_state s LEFT JOIN ({found}) r ON TRUE"
    return Statement(sql, text.parameters)


def records(read: ReadPlan, style: OutputStyle, page: Page) -> Statement:
    """A page of records and one more: catalogue version, JSON, and the keys that a cursor is made of."""
    text = StatementBuilder()
    keys = [f"k{number}" for number in range(len(read.order) + 1)]
    ids = _page(text, read, page, keys)
    outer = FromClause(text, read)
    shown = _json(text, style, read.fields, outer)
    order = ", ".join(f"p.{name} {way}" for name, way in zip(keys, _ways(read), strict=True))
    own_key = f"p.{keys[-1]} = {outer.anchor.sys_id()}"
    kept = ", ".join(f"p.{name}::text AS {name}" for name in keys)
    source = f"({ids}) p JOIN {outer.anchor.enclosed()} ON {own_key}{outer.joins()}"
    body = f"SELECT {shown} AS body, {kept} FROM {source} ORDER BY {order}"
    names = ", ".join(f"r.{name}" for name in keys)
    sql = f"SELECT s.version, r.body, {names} FROM public.tableapi_state s LEFT JOIN ({body}) r ON TRUE"
    return Statement(sql, text.parameters)


def counted(read: ReadPlan, most: int | None = None) -> Statement:
    """How many records there are for this caller; with `most`, counted no further."""
    text = StatementBuilder()
    scope = FromClause(text, read)
    where = _where(scope, read)
    limit = f" LIMIT {most}" if most is not None else ""
    sql = f"SELECT count(*) FROM (SELECT FROM {scope.from_clause()}{where}{limit}) c"
    return Statement(sql, text.parameters)


def _where(scope: FromClause, read: ReadPlan) -> str:
    parts = [*scope.readable(read.records), *scope.condition(read.where)]
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def _sort_key(scope: FromClause, sort: Sort) -> str:
    return key(comparison_kind(sort.leaf.column), scope.value(sort.leaf))


def is_downwards(read: ReadPlan) -> bool:
    """Whether sys_id, always the last key, goes down: with the key before it, so that one index serves both."""
    return bool(read.order) and read.order[-1].descending


def _ways(read: ReadPlan) -> list[str]:
    down = [*(sort.descending for sort in read.order), is_downwards(read)]
    # "empty last ascending and first descending": PostgreSQL's own order.
    return ["DESC" if each else "ASC" for each in down]


def _page(text: StatementBuilder, read: ReadPlan, page: Page, names: list[str]) -> str:
    scope = FromClause(text, read)
    keys = [*(_sort_key(scope, sort) for sort in read.order), scope.anchor.sys_id()]
    parts = [*scope.readable(read.records), *scope.condition(read.where)]
    selected = ", ".join(f"{sql} AS {name}" for sql, name in zip(keys, names, strict=True))
    order = ", ".join(f"{sql} {way}" for sql, way in zip(keys, _ways(read), strict=True))
    offset = f" OFFSET {text.given('offset', 'bigint')}" if page.has_offset else ""
    tail = f" ORDER BY {order} LIMIT {page.limit + 1}{offset}"
    if page.after is None:
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"SELECT {selected} FROM {scope.from_clause()}{where}{tail}"
    branches = _behind(text, read, keys, page.after)
    source = scope.from_clause()
    if page.has_offset or not _leads_an_index(read):
        where = " AND ".join([*parts, f"({' OR '.join(branches)})"])
        return f"SELECT {selected} FROM {source} WHERE {where}{tail}"
    # Each branch is a range of the index, and they follow one another: none reads more than the page.
    selects = [f"(SELECT {selected} FROM {source} WHERE {' AND '.join([*parts, each])}{tail})" for each in branches]
    ways = ", ".join(f"{name} {way}" for name, way in zip(names, _ways(read), strict=True))
    return f"SELECT * FROM ({' UNION ALL '.join(selects)}) u ORDER BY {ways} LIMIT {page.limit + 1}"


def _leads_an_index(read: ReadPlan) -> bool:
    first = read.order[0].leaf if read.order else None
    if first is None:
        return True
    column = first.column
    is_marked = column.is_indexed or column.is_display or column.is_unique or column.type == "reference"
    has_index = column.name in INDEXED_SYS if column.is_sys else is_marked and column.type not in UNBOUNDED
    return has_index and not first.hops and isinstance(first.guard, Always)


def _behind(text: StatementBuilder, read: ReadPlan, keys: list[str], after: tuple[bool, ...]) -> list[str]:
    """What comes after the cursor, as conditions that exclude one another."""
    down = [*(sort.descending for sort in read.order), is_downwards(read)]
    types = [*(SQL_TYPES[comparison_kind(sort.leaf.column)] for sort in read.order), "varchar"]
    branches: list[str] = []
    equal: list[str] = []
    for number, (sql, descending, has_value) in enumerate(zip(keys, down, after, strict=True)):
        value = text.given(f"after{number}", types[number]) if has_value else ""
        further = []
        if has_value:
            further.append(f"{sql} {'<' if descending else '>'} {value}")
            if not descending and number < len(keys) - 1:
                further.append(f"{sql} IS NULL")
        elif descending:
            further.append(f"{sql} IS NOT NULL")
        branches += [" AND ".join([*equal, each]) for each in further]
        equal.append(f"{sql} = {value}" if has_value else f"{sql} IS NULL")
    return branches


def _json(text: StatementBuilder, style: OutputStyle, fields: tuple[OutputField, ...], scope: FromClause) -> str:
    """The record as JSON. A row is the quickest way; names too long for a row's columns are added behind."""
    short, long = [], []
    for output in fields:
        sql = output_fields.field(text, style, output, scope.reach(output.leaf.hops))
        if len(output.key.encode()) <= LONGEST_NAME:
            short.append(f"{sql} AS {quoted(output.key)}")
        else:
            long += [literal(output.key), sql]
    if not fields:
        return "'{}'::json"
    # In upper case: a column of the record may be called x, and would be meant in its place.
    row = f'(SELECT row_to_json("X") FROM (SELECT {", ".join(short)}) "X")'
    if not long:
        return row
    # A function takes no more than a hundred arguments.
    pieces = [f"json_build_object({', '.join(long[at : at + 80])})::text" for at in range(0, len(long), 80)]
    whole = ([f"{row}::text"] if short else []) + pieces
    inner = " || ',' || ".join(f"substr({piece}, 2, length({piece}) - 2)" for piece in whole)
    return f"('{{' || {inner} || '}}')::json"
