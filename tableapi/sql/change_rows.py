"""Compiles the insert into `sys_change` for a write: user, time, and the values before and after it. Pure.

Values are in a JSON object by column id, because names can be reused. Empty values, passwords and secrets are left out.
Long values are truncated, and the key with the suffix `#sha256` has the hash of the whole value.
"""

from collections.abc import Callable, Iterable

from system.records.change_log import HASH_SUFFIX, MAX_VALUE_LENGTH
from tableapi.catalogue.definitions import Column

from .statement_builder import literal

# Columns of the record that have their own columns in `sys_change`.
ROW_COLUMNS = frozenset({"sys_id", "sys_version", "sys_db_table_id"})
COLUMNS = "table_key, record_id, version, operation, changed_by, old_values, new_values"

# Returns the SQL of the database column with this name, which belongs to this column of the catalogue.
ColumnSql = Callable[[Column, str], str]


def change_sql(operation: str, *, record: str, user: str, old: str = "'{}'", new: str = "'{}'", source: str) -> str:
    """Compile the insert. `record` is the alias of the record's row in its root table, `source` the FROM clause."""
    values = f"{record}.sys_db_table_id, {record}.sys_id, {record}.sys_version, {literal(operation)}, {user}"
    return f"INSERT INTO public.sys_change ({COLUMNS}) SELECT {values}, {old}::jsonb, {new}::jsonb FROM {source}"


def values_sql(columns: Iterable[Column], sql_of: ColumnSql) -> str:
    """
    >>> columns = [Column("rank", "integer", "task", "rank", "17"), Column("pin", "secret", "task", "pin", "18")]
    >>> values_sql(columns, lambda _, name: f"t.{name}")
    "jsonb_strip_nulls(jsonb_build_object('17', t.rank))"
    """
    pairs: list[str] = []
    parts: list[str] = []
    for column in columns:
        if not column.is_readable:
            continue
        value = sql_of(column, column.database_name)
        if column.column_type.is_json:
            text = f"{value}::text"
            short = f"CASE WHEN length({text}) > {MAX_VALUE_LENGTH} THEN to_jsonb({_prefix_sql(text)}) ELSE {value} END"
            # Separate, because jsonb_strip_nulls would remove nulls inside the value.
            parts.append(
                f"CASE WHEN {value} IS NULL THEN '{{}}' ELSE jsonb_build_object({_key_literal(column)}, {short}) END"
            )
            pairs += _hash_pair(column, text)
        elif column.column_type.is_text and (column.max_length is None or column.max_length > MAX_VALUE_LENGTH):
            pairs += [f"{_key_literal(column)}, {_prefix_sql(value)}", *_hash_pair(column, value)]
        else:
            pairs.append(f"{_key_literal(column)}, {value}")
        if column.column_type.is_html:
            pairs.append(f"{literal(column.plain_text_name)}, {_prefix_sql(sql_of(column, column.plain_text_name))}")
    # A function takes at most 100 arguments.
    for start in range(0, len(pairs), 50):
        parts.append(f"jsonb_strip_nulls(jsonb_build_object({', '.join(pairs[start : start + 50])}))")
    return " || ".join(parts) or "'{}'"


def column_key(column: Column) -> str:
    """Return the key of a column's value: its id, or its name if only the server writes it."""
    return column.id or column.name


def _key_literal(column: Column) -> str:
    return literal(column_key(column))


def _prefix_sql(text: str) -> str:
    return f"left({text}, {MAX_VALUE_LENGTH})"


def _hash_pair(column: Column, text: str) -> list[str]:
    digest = f"encode(sha256(convert_to({text}, 'UTF8')), 'hex')"
    key = literal(column_key(column) + HASH_SUFFIX)
    return [f"{key}, CASE WHEN length({text}) > {MAX_VALUE_LENGTH} THEN {digest} END"]
