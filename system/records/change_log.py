"""Writes the rows of `sys_change` for records of the product's own tables; `tableapi.sql` does it for designed ones."""

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

INSERT = (
    "INSERT INTO public.sys_change (table_key, record_id, version, operation, changed_by, old_values, new_values) "
    "VALUES (%(table)s, %(record_id)s, %(version)s, %(operation)s, %(who)s, %(old)s, %(new)s)"
)


def write(operation: str, record: Any, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """In the transaction of the write; equal values are left out."""
    # Custom columns come with their values already cut.
    changed = [
        name for name in {**old, **new} if any(old.get(key) != new.get(key) for key in (name, name + HASH_SUFFIX))
    ]
    values = {
        "table": record._meta.db_table,
        "record_id": record.pk,
        "version": record.sys_version,
        "operation": operation,
        "who": acting_user.current(),
        "old": Jsonb(_logged_values(old, changed)),
        "new": Jsonb(_logged_values(new, changed)),
    }
    run_named_sql(INSERT, values)


def _logged_values(values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    logged: dict[str, Any] = {}
    for name in names:
        value = values.get(name)
        text = value if isinstance(value, str) else json.dumps(value) if isinstance(value, dict | list) else ""
        if len(text) > MAX_VALUE_LENGTH:
            logged[name] = text[:MAX_VALUE_LENGTH]
            logged[name + HASH_SUFFIX] = hashlib.sha256(text.encode()).hexdigest()
        elif value is not None:
            logged[name] = value
    return logged
