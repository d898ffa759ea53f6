"""Checks that the content of deleted records changes no response to callers who are not administrators."""

from __future__ import annotations

import json
from random import Random
from typing import Any
from unittest.mock import patch

from django.db import connection

from system.records import acting_user
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Rule, Table
from tableapi.read import context
from tests.tableapi.laws.storage import rollback_afterwards
from tests.tableapi.noninterference.programs import Step
from tests.tableapi.noninterference.runner import Conversation
from tests.tableapi.oracle import Caller
from tests.tableapi.oracle.alphabets import USER_IDS
from tests.tableapi.oracle.column_types import NOW

LOG_TABLE = "sys_deletion_log"
CALLER = Caller(USER_IDS[0])
FIELD_NAMES = ["payload", "payload", "table", "record_id", "display_value", "deleted_by", "sys_id", "deleted_by.login"]
CONDITIONS = ["payloadISNOTEMPTY", "payloadISEMPTY", "payloadLIKEs", "sys_idAREsecret", "table=device", "payload=s"]
ORDER_CLAUSES = ["", "^ORDERBYpayload", "^ORDERBYDESCpayload", "^ORDERBYrecord_id"]
RULE_CONDITIONS = ["", "table=device", "deleted_byISEMPTY", f"deleted_by={USER_IDS[0]}"]


def find_violation(seed: int) -> tuple[Step, Any, Any] | None:
    """Return the first response that differs between two logs with different content or hidden entries."""
    random = Random(seed)
    condition = random.choice(RULE_CONDITIONS)
    steps = [make_step(random) for _ in range(4)]
    with rollback_afterwards(), patch.object(context, "now", lambda: NOW), acting_user.acting_as(CALLER.id):
        saving.save_rule(Rule(operation="read", table=Table.objects.get(name=LOG_TABLE), condition=condition))
        # Loaded here, so that both logs cause the same statements.
        catalogue_loader.clear_cache()
        catalogue_loader.reload_if_changed()
        responses = responses_with_payloads([{}, {"a": 1}], steps)
        other_responses = responses_with_payloads([{"name": "secret"}, None], steps, has_hidden_entry=bool(condition))
    catalogue_loader.clear_cache()
    return next(
        (
            (step, first, second)
            for (step, *first), (_, *second) in zip(responses, other_responses, strict=True)
            if first != second
        ),
        None,
    )


def make_step(random: Random) -> Step:
    params = {"sysparm_limit": random.choice(["1", "5"]), "sysparm_count": "exact"}
    if random.random() < 0.6:
        params["sysparm_fields"] = ",".join(random.sample(FIELD_NAMES, 2))
    if random.random() < 0.6:
        params["sysparm_query"] = random.choice(CONDITIONS) + random.choice(ORDER_CLAUSES)
    sys_id = random.choice(["", "", "1800000000000000a1", "1800000000000000b1"])
    method = random.choice(["GET", "GET", "GET", "DELETE", "PATCH"]) if sys_id else "GET"
    if method != "GET":
        return Step(
            method, LOG_TABLE, sys_id, {}, {random.choice(FIELD_NAMES[1:5]): "s"} if method == "PATCH" else None
        )
    return Step("GET", LOG_TABLE, sys_id, params, max_pages=0 if sys_id else 1)


def responses_with_payloads(payloads: list[Any], steps: list[Step], *, has_hidden_entry: bool = False) -> list[Any]:
    with rollback_afterwards():
        for number, payload in enumerate(payloads, 1):
            store_log_entry(f"1800000000000000a{number}", "device", USER_IDS[0], payload)
        if has_hidden_entry:
            store_log_entry("1800000000000000b1", "other", USER_IDS[1], {"name": "secret"})
        conversation = Conversation(CALLER)
        return [response for step in steps for response in conversation.send_and_follow(step)]


def store_log_entry(sys_id: str, table: str, user_id: str, payload: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO {LOG_TABLE} (sys_id, sys_created_at, sys_updated_at, sys_version, "table", record_id, '
            "display_value, payload, deleted_by) VALUES (%s, %s, %s, 0, %s, '1', 'Lamp', %s, %s)",
            [sys_id, NOW, NOW, table, json.dumps(payload), user_id],
        )
