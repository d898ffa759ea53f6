"""The row of `sys_change` that a write leaves: who, when, and the values before and after it. Pure.

Values are JSON objects by the id of the column, without empty values: a name may be given to another column later. A
long value is cut; its key with `#sha256` has the hash of all of it. Passwords and secrets are never in it.
"""

from collections.abc import Callable, Iterable

from system.records.change_log import HASH_SUFFIX, MAX_VALUE_LENGTH
from tableapi.catalogue.definitions import Column

from .statement_builder import literal

# Columns of the record that the row itself has.
ROW_COLUMNS = frozenset({"sys_id", "sys_version", "sys_db_table_id"})
COLUMNS = "table_key, record_id, version, operation, changed_by, old_values, new_values"

# The SQL of a database column, which belongs to a column of the catalogue and has this name.
SqlOf = Callable[[Column, str], str]


def change_sql(operation: str, *, record: str, who: str, old: str = "'{}'", new: str = "'{}'", source: str) -> str:
    """`record` is the alias of the record's row in its root table; `source` the FROM clause."""
    values = f"{record}.sys_db_table_id, {record}.sys_id, {record}.sys_version, {literal(operation)}, {who}"
    return f"INSERT INTO public.sys_change ({COLUMNS}) SELECT {values}, {old}::jsonb, {new}::jsonb FROM {source}"


def values_sql(columns: Iterable[Column], sql_of: SqlOf) -> str:
    """
    >>> columns = [Column("rank", "integer", "task", "rank", "17"), Column("pin", "secret", "task", "pin", "18")]
    >>> values_sql(columns, lambda _, name: f"t.{name}")
    "jsonb_strip_nulls(jsonb_build_object('17', t.rank))"
    """
    plain: list[str] = []
    parts: list[str] = []
    for column in columns:
        if not column.is_readable:
            continue
        value = sql_of(column, column.database_name)
        if column.column_type.is_json:
            text = f"{value}::text"
            short = f"CASE WHEN length({text}) > {MAX_VALUE_LENGTH} THEN to_jsonb({_start(text)}) ELSE {value} END"
            # Apart: what is stripped must not be a part of the value.
            parts.append(
                f"CASE WHEN {value} IS NULL THEN '{{}}' ELSE jsonb_build_object({_key_literal(column)}, {short}) END"
            )
            plain += _hash_pair(column, text)
        elif _may_be_long(column):
            plain += [f"{_key_literal(column)}, {_start(value)}", *_hash_pair(column, value)]
        else:
            plain.append(f"{_key_literal(column)}, {value}")
        if column.column_type.is_html:
            plain.append(f"{literal(column.plain_text_name)}, {_start(sql_of(column, column.plain_text_name))}")
    # A function takes at most 100 arguments.
    for at in range(0, len(plain), 50):
        parts.append(f"jsonb_strip_nulls(jsonb_build_object({', '.join(plain[at : at + 50])}))")
    return " || ".join(parts) or "'{}'"


def column_key(column: Column) -> str:
    """The key of a column's value: its id, or its name if the server alone writes it."""
    return column.id or column.name


def _key_literal(column: Column) -> str:
    return literal(column_key(column))


def _may_be_long(column: Column) -> bool:
    return column.column_type.is_text and (column.max_length is None or column.max_length > MAX_VALUE_LENGTH)


def _start(text: str) -> str:
    return f"left({text}, {MAX_VALUE_LENGTH})"


def _hash_pair(column: Column, text: str) -> list[str]:
    digest = f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    key = literal(column_key(column) + HASH_SUFFIX)
    return [f"{key}, CASE WHEN length({text}) > {MAX_VALUE_LENGTH} THEN {digest} END"]
