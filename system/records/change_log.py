"""Writes the rows of `sys_change` for product tables; `tableapi.sql` writes those for designed tables."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from system.database_statements import run_named_sql
from system.records import acting_user

# A longer value is cut, and its hash stored under the key with this suffix.
MAX_VALUE_LENGTH = 1_000
HASH_SUFFIX = "#sha256"

CustomValues = tuple[Mapping[str, Any], Mapping[str, Any]]

INSERT = (
    "INSERT INTO public.sys_change (table_key, record_id, version, operation, changed_by, old_values, new_values) "
    "VALUES (%(table)s, %(record_id)s, %(version)s, %(operation)s, %(changed_by)s, %(old)s, %(new)s)"
)


def write(
    operation: str, record: Any, old: Mapping[str, Any], new: Mapping[str, Any], custom: CustomValues = ({}, {})
) -> None:
    """Log a write in its transaction, without unchanged values. `custom` contains the values of custom columns before
    and after the write, in the form of the log."""
    changed_names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    old_custom, new_custom = custom
    changed_custom_names = {
        name.removesuffix(HASH_SUFFIX)
        for name in {**old_custom, **new_custom}
        if old_custom.get(name) != new_custom.get(name)
    }
    values = {
        "table": record._meta.db_table,
        "record_id": record.pk,
        "version": record.sys_version,
        "operation": operation,
        "changed_by": acting_user.current(),
        "old": Jsonb(_logged_values(old, changed_names) | _custom_values(old_custom, changed_custom_names)),
        "new": Jsonb(_logged_values(new, changed_names) | _custom_values(new_custom, changed_custom_names)),
    }
    run_named_sql(INSERT, values)


def _custom_values(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name.removesuffix(HASH_SUFFIX) in names}


def _logged_values(values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    logged_values: dict[str, Any] = {}
    for name in names:
        value = values.get(name)
        text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else ""
        if len(text) > MAX_VALUE_LENGTH:
            logged_values[name] = text[:MAX_VALUE_LENGTH]
            logged_values[name + HASH_SUFFIX] = hashlib.sha256(text.encode()).hexdigest()
        elif value is not None:
            logged_values[name] = value
    return logged_values
