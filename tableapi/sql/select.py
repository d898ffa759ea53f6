"""Compiles read statements: they select the records of a page, then format only these. Pure."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tableapi.query.expressions import AlwaysAllowed, Decision, Expression, PathStep, ResolvedPath
from tableapi.query.read_plan import OutputField, ReadPlan
from tableapi.values.comparison import SQL_TYPES

from . import output_fields, predicates, text_fields
from .operators import comparison_key
from .output_fields import OutputStyle
from .statement_builder import Parameter, StatementBuilder, StatementInputs, TableAlias

INDEXED_SYS_COLUMNS = frozenset({"sys_id", "sys_created_at", "sys_updated_at"})
BYTES_PER_PARAMETER = 250


@dataclass(slots=True)
class Statement:
    """SQL text with numbered parameters, each a function that returns its value for a request."""

    sql: str
    parameters: Sequence[Parameter]
    _encoded: tuple[int, bytes] = (-1, b"")

    @property
    def weight(self) -> int:
        """The approximate size in a cache, in bytes."""
        return 2 * len(self.sql) + BYTES_PER_PARAMETER * len(self.parameters)  # the SQL as text and as bytes

    def values(self, inputs: StatementInputs) -> list[Any]:
        return [value(inputs) for value in self.parameters]

    def encode(self, version: int) -> bytes:
        """Return the text for the driver, always the same object because the driver looks it up. The version makes it
        prepare the statement again for another catalogue, where a column of the same name may have another type."""
        encoded_version, text = self._encoded
        if encoded_version != version:
            text = f"{self.sql} /* {version} */".encode()
            self._encoded = (version, text)
        return text


class Page(NamedTuple):
    """A page of a list, in blocks of records. `cursor_value_flags` tells which sort keys of the cursor have a value."""

    limit: int
    block_size: int
    has_offset: bool = False
    cursor_value_flags: tuple[bool, ...] | None = None


class FromClause:
    """The FROM clause of a read. References become joins, as far as the caller may follow them."""

    def __init__(self, builder: StatementBuilder, plan: ReadPlan) -> None:
        self.builder = builder
        self.alias = TableAlias(builder, plan.table)
        self._joins: dict[tuple[str, ...], tuple[TableAlias, str]] = {}

    def value(self, path: ResolvedPath) -> str:
        alias = self.alias_at(path.steps)
        return predicates.guarded_value(self.builder, path.guard, alias, alias.column(path.column))

    def alias_at(self, steps: tuple[PathStep, ...]) -> TableAlias:
        """Return the alias of the records that these references lead to."""
        alias = self.alias
        names: tuple[str, ...] = ()
        for step in steps:
            names = (*names, step.column.name)
            if names not in self._joins:
                self._joins[names] = self._join(alias, step)
            alias = self._joins[names][0]
        return alias

    def _join(self, alias: TableAlias, step: PathStep) -> tuple[TableAlias, str]:
        reference = predicates.guarded_value(self.builder, step.guard, alias, alias.column(step.column))
        target = TableAlias(self.builder, step.target)
        readable_conditions = predicates.decision_conditions(self.builder, step.records, target)
        return target, " AND ".join([f"{target.sys_id()} = {reference}", *readable_conditions])

    def query_conditions(self, expression: Expression | None) -> list[str]:
        return [predicates.expression_sql(self.builder, expression, self.alias, self.value)] if expression else []

    def readable_conditions(self, records: Decision) -> list[str]:
        return predicates.decision_conditions(self.builder, records, self.alias)

    def conditions(self, plan: ReadPlan) -> list[str]:
        """Return the conditions of the records that the caller can read and that match the query."""
        return [*self.readable_conditions(plan.records), *self.query_conditions(plan.where)]

    def sql(self) -> str:
        return self.alias.from_sql() + self.joins()

    def joins(self) -> str:
        return "".join(f" LEFT JOIN {target.join_sql()} ON {on}" for target, on in self._joins.values())


def versioned_statement(builder: StatementBuilder, names: str, rows: str) -> Statement:
    """Return the catalogue version and these columns of each row; one row with only the version if there are none."""
    sql = f"SELECT s.version, {names} FROM public.tableapi_state s LEFT JOIN ({rows}) r ON TRUE"
    return Statement(sql, builder.parameters)


def record_statement(plan: ReadPlan, style: OutputStyle, *, has_many: bool = False) -> Statement:
    """Return one record by its id, or many by their ids: catalogue version, id, record version, JSON. With a list of
    one id, PostgreSQL would plan the statement again for each request."""
    builder = StatementBuilder()
    from_clause = FromClause(builder, plan)
    sys_id = from_clause.alias.sys_id()
    ids = f"ANY ({builder.input('sys_ids', 'varchar[]')})" if has_many else builder.input("sys_id", "varchar")
    where = [f"{sys_id} = {ids}", *from_clause.readable_conditions(plan.records)]
    body = record_json_sql(builder, style, plan.fields, from_clause)
    version = from_clause.value(plan.version) if plan.version else "NULL"
    columns = f"{sys_id} AS sys_id, {version} AS version, {body} AS body"
    records = f"SELECT {columns} FROM {from_clause.sql()} WHERE {' AND '.join(where)}"
    return versioned_statement(builder, "r.sys_id, r.version, r.body", records)


def written_record_sql(builder: StatementBuilder, plan: ReadPlan, style: OutputStyle) -> str | None:
    """Return id, version and JSON of the record in the CTE `written`. None if other records are needed, because
    they would be read as they were before the write."""
    from_clause = FromClause(builder, plan)
    tables = builder.table_count
    body = record_json_sql(builder, style, plan.fields, from_clause)
    version = from_clause.value(plan.version) if plan.version else "NULL"
    if builder.table_count > tables:
        return None
    return f"SELECT {from_clause.alias.sys_id()}, {version}, {body} FROM {from_clause.alias.from_sql('written')}"


def page_statement(plan: ReadPlan, style: OutputStyle, page: Page) -> Statement:
    """Return a page in blocks: catalogue version, JSON of the block, sort keys of its last record for the cursor, and
    in the last row whether there are more records."""
    # No column has such a name.
    builder, keys = StatementBuilder(), [f'"K{number}"' for number in range(len(plan.order) + 1)]
    page_sql = _page_sql(builder, plan, page, keys)
    from_clause = FromClause(builder, plan)
    alias, record = from_clause.alias, record_json_sql(builder, style, plan.fields, from_clause)
    order, joins = order_sql(plan, keys), from_clause.joins()
    numbered = f"SELECT *, row_number() OVER (ORDER BY {order}) AS place FROM"
    if _selects_whole_rows(plan, page):
        columns = ", ".join(f"{alias.name}.{key}" for key in keys)
        source = f"{alias.from_sql(f'({page_sql})')}{joins}"
        # With OFFSET 0, PostgreSQL formats the records before it numbers them, so that it does not copy whole rows.
        rows = f"{numbered} (SELECT {record} AS body, {columns} FROM {source} ORDER BY {order} OFFSET 0) p"
    else:
        source = f"({numbered} ({page_sql}) p) p JOIN {alias.join_sql()} ON p.{keys[-1]} = {alias.sys_id()}{joins}"
        rows = f"SELECT {record} AS body, p.* FROM {source}"
    names = ", ".join(f"r.{name}" for name in ("body", *keys, "has_more"))
    return versioned_statement(builder, names, _blocks_sql(rows, keys, plan, page))


def _blocks_sql(rows: str, keys: list[str], plan: ReadPlan, page: Page) -> str:
    """Join the JSON of each block. The first block may be shorter, so that the last one ends with the page. The record
    after the page is in the last block, but only counted."""
    size, count = page.block_size, -(-page.limit // page.block_size)
    place = f"(b.place + {count * size - page.limit})"
    is_last = f"b.place <= {page.limit} AND {place} % {size} = 0"
    # The rows already have the order of their keys, so that a single block need not be sorted.
    order = order_sql(plan, [f"b.{name}" for name in keys]) if count == 1 else "b.place"
    body = f"string_agg(b.body, ',' ORDER BY {order}) FILTER (WHERE b.place <= {page.limit}) AS body"
    last_keys = ", ".join(f"min(b.{name}::text) FILTER (WHERE {is_last}) AS {name}" for name in keys)
    sql = f"SELECT {body}, {last_keys}, max(b.place) > {page.limit} AS has_more FROM ({rows}) b"
    if count == 1:
        return sql
    block = f"least(({place} - 1) / {size}, {count - 1})"
    return f"{sql} GROUP BY {block} ORDER BY {block}"


def count_statement(plan: ReadPlan, maximum: int | None = None) -> Statement:
    """Count the records that the caller can read, up to the maximum if there is one."""
    builder = StatementBuilder()
    from_clause = FromClause(builder, plan)
    where = _where_sql(from_clause.conditions(plan))
    limit = f" LIMIT {maximum}" if maximum is not None else ""
    sql = f"SELECT count(*) FROM (SELECT FROM {from_clause.sql()}{where}{limit}) c"
    return Statement(sql, builder.parameters)


def locking_statement(plan: ReadPlan, sys_id: OutputField | None, limit: int, lock: str) -> Statement:
    """Return catalogue version, id, and id if the caller can read it, of the matching records. They are locked, so that
    they still match when they are written."""
    builder = StatementBuilder()
    from_clause = FromClause(builder, plan)
    alias = from_clause.alias
    where = _where_sql(from_clause.conditions(plan))
    visible_id = from_clause.value(sys_id.path) if sys_id else "NULL"
    rows = ", ".join(alias.row_aliases())
    ids = (
        f"SELECT {alias.sys_id()} AS sys_id, {visible_id} AS visible_id FROM {from_clause.sql()}{where} "
        f"ORDER BY {alias.sys_id()} LIMIT {limit} FOR {lock} OF {rows}"
    )
    return versioned_statement(builder, "r.sys_id, r.visible_id", ids)


def _where_sql(parts: list[str]) -> str:
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def sort_keys(plan: ReadPlan, from_clause: FromClause) -> list[str]:
    keys = [comparison_key(sort.path.column.compare_as, from_clause.value(sort.path)) for sort in plan.order]
    return [*keys, from_clause.alias.sys_id()]


def _descending_flags(plan: ReadPlan) -> list[bool]:
    """Return a flag for each key. The last, sys_id, is sorted like the key before it, so that one index serves both."""
    keys = [sort.is_descending for sort in plan.order]
    return [*keys, keys[-1] if keys else False]


def order_sql(plan: ReadPlan, keys: list[str]) -> str:
    # "empty last ascending and first descending": PostgreSQL's own order.
    flags = zip(keys, _descending_flags(plan), strict=True)
    return ", ".join(f"{sql} {'DESC' if is_descending else 'ASC'}" for sql, is_descending in flags)


def _page_sql(builder: StatementBuilder, plan: ReadPlan, page: Page, names: list[str]) -> str:
    from_clause = FromClause(builder, plan)
    keys, parts = sort_keys(plan, from_clause), from_clause.conditions(plan)
    selected = ", ".join(f"{sql} AS {name}" for sql, name in zip(keys, names, strict=True))
    if _selects_whole_rows(plan, page):
        selected = f"{from_clause.alias.name}.*, {selected}"
    offset = f" OFFSET {builder.input('offset', 'bigint')}" if page.has_offset else ""
    tail = f" ORDER BY {order_sql(plan, keys)} LIMIT {page.limit + 1}{offset}"
    if page.cursor_value_flags is None:
        return f"SELECT {selected} FROM {from_clause.sql()}{_where_sql(parts)}{tail}"
    branches = _cursor_branches(builder, plan, keys, page.cursor_value_flags)
    source = from_clause.sql()
    if page.has_offset or not _can_use_index(plan):
        where = " AND ".join([*parts, f"({' OR '.join(branches)})"])
        return f"SELECT {selected} FROM {source} WHERE {where}{tail}"
    # Each branch is a range of the index, so none reads more than the page.
    selects = [f"(SELECT {selected} FROM {source} WHERE {' AND '.join([*parts, branch])}{tail})" for branch in branches]
    return f"SELECT * FROM ({' UNION ALL '.join(selects)}) u ORDER BY {order_sql(plan, names)} LIMIT {page.limit + 1}"


def _selects_whole_rows(plan: ReadPlan, page: Page) -> bool:
    """Whether the page is selected with all columns, so that its records need not be looked up again. If PostgreSQL may
    have to sort or skip rows, they contain only the keys, because small rows cost less."""
    return _can_use_index(plan) and not page.has_offset and page.limit <= page.block_size


def _can_use_index(plan: ReadPlan) -> bool:
    first = plan.order[0].path if plan.order else None
    if first is None:
        return True
    column = first.column
    is_marked = column.is_indexed or column.is_display or column.is_unique or column.column_type.is_reference
    has_index = column.name in INDEXED_SYS_COLUMNS if column.is_sys else is_marked and column.column_type.has_main_index
    return has_index and not first.steps and isinstance(first.guard, AlwaysAllowed)


def _cursor_branches(builder: StatementBuilder, plan: ReadPlan, keys: list[str], flags: tuple[bool, ...]) -> list[str]:
    """Return conditions that select the records after the cursor. Each record meets at most one."""
    types = [*(SQL_TYPES[sort.path.column.compare_as] for sort in plan.order), "varchar"]
    branches: list[str] = []
    equal: list[str] = []
    for number, (sql, is_descending, has_value) in enumerate(zip(keys, _descending_flags(plan), flags, strict=True)):
        value = builder.input(f"after{number}", types[number]) if has_value else ""
        conditions = []
        if has_value:
            conditions.append(f"{sql} {'<' if is_descending else '>'} {value}")
            if not is_descending and number < len(keys) - 1:
                conditions.append(f"{sql} IS NULL")
        elif is_descending:
            conditions.append(f"{sql} IS NOT NULL")
        branches += [" AND ".join([*equal, condition]) for condition in conditions]
        equal.append(f"{sql} = {value}" if has_value else f"{sql} IS NULL")
    return branches


def record_json_sql(
    builder: StatementBuilder, style: OutputStyle, fields: tuple[OutputField, ...], from_clause: FromClause
) -> str:
    """Return the record as JSON text; row_to_json was measured to take a seventh longer."""
    pieces: list[str] = []
    for output in fields:
        prefix = f"{',' if pieces else '{'}{json.dumps(output.key, ensure_ascii=False)}:"
        alias = from_clause.alias_at(output.path.steps)
        if style.names:
            pieces.append(text_fields.member_sql(builder, style, style.names, output, alias, prefix))
        else:
            pieces.append(output_fields.member_sql(builder, style, output, alias, prefix))
    if not fields:
        return "'{}'::text"
    pieces.append("'}'")
    # A function takes at most 100 arguments.
    return " || ".join(f"concat({', '.join(pieces[start : start + 100])})" for start in range(0, len(pieces), 100))
