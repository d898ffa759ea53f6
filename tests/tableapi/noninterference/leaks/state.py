"""Leaks of stored responses, deferred records and the deletion log."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from system.errors import Conflict
from tableapi.access import permissions
from tableapi.access.permissions import Permissions
from tableapi.catalogue.definitions import Table
from tableapi.http import idempotency
from tableapi.models import DeferredRecord
from tableapi.query.expressions import ALWAYS
from tableapi.write import create
from tests.tableapi.noninterference.leaks.switch import leak, replace_function


@leak("B24", finder="shared_state")
def callers_share_their_idempotency_keys(stack: ExitStack) -> None:
    replace_function(stack, idempotency, "_identity", identity_without_caller)


def identity_without_caller(original: Any, *args: Any) -> dict[str, Any]:
    return {**original(*args), "caller": ""}


@leak("B24", finder="shared_state")
def stored_responses_are_shared_by_equal_requests(stack: ExitStack) -> None:
    def hash_without_roles(original: Any, user: Any, body: bytes, options: Any) -> str:
        return hashlib.sha256(body).hexdigest()

    replace_function(stack, idempotency, "_identity", identity_without_caller)
    replace_function(stack, idempotency, "_request_hash", hash_without_roles)


@leak("B24", finder="shared_state")
def deferred_record_is_refused_while_others_are_queued(stack: ExitStack) -> None:
    def refuse_second_record(original: Any, change: Any, *args: Any) -> Any:
        if DeferredRecord.objects.filter(table=change.table.name).exists():
            raise Conflict("Another record of this table is being created.")
        return original(change, *args)

    replace_function(stack, create, "_defer", refuse_second_record)


@leak("B28", finder="deletion_log")
def content_of_deleted_records_is_readable(stack: ExitStack) -> None:
    stack.enter_context(patch.dict(permissions.FIXED_READERS, clear=True))


@leak("B13", finder="deletion_log")
def every_entry_of_the_deletion_log_is_readable(stack: ExitStack) -> None:
    def open_deletion_log(original: Any, self: Permissions, operation: str, table: Table) -> Any:
        return ALWAYS if table.name == "sys_deletion_log" and operation == "read" else original(self, operation, table)

    replace_function(stack, Permissions, "record_decision", open_deletion_log)
