"""Requests for hidden and missing records run the same statements, so response times reveal nothing."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import ApiClient, api, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db

MISSING_ID = "179999999900000000"


def send_conditional_request(caller: ApiClient, path: str, *, method: str, headers: dict[str, str]) -> Any:
    return caller.send(method, path, {"name": "x"} if method in ("PATCH", "PUT") else None, headers)


REQUESTS: dict[str, Callable[[ApiClient, str], Any]] = {
    "GET": lambda caller, path: caller.get(path),
    "GET of some fields": lambda caller, path: caller.get(path, fields="name,owner.login", display_value="all"),
    "PATCH": lambda caller, path: caller.patch(path, {"name": "x"}),
    "PATCH with a key": lambda caller, path: caller.patch(path, {"name": "x"}, headers={"Idempotency-Key": path}),
    "PUT": lambda caller, path: caller.put(path, {"name": "x"}),
    "DELETE": lambda caller, path: caller.delete(path),
    "HEAD": lambda caller, path: caller.head(path),
    **{
        f"{method} with {name}: {tag}": partial(send_conditional_request, method=method, headers={name: tag})
        for name, methods in (("If-None-Match", ("GET", "HEAD")), ("If-Match", ("PATCH", "PUT", "DELETE")))
        for method in methods
        for tag in ('"0-x"', '"1-x"', "*", 'W/"0-x", "7-y"')
    },
}


@pytest.fixture
def hidden_lamp(bob: User) -> str:
    """A device that is hidden from Bob. He may read, change and delete all others."""
    table("device")
    field("device", "name")
    field("device", "owner", target="user")
    for operation in ("read", "write", "delete"):
        rule(operation, "device", condition="name!=hidden")
    record("device", name="Lamp")
    return record("device", name="hidden")


@pytest.mark.parametrize("send_request", REQUESTS.values(), ids=REQUESTS.keys())
def test_hidden_and_missing_records_run_the_same_statements(
    hidden_lamp: str, bob: User, send_request: Callable[[ApiClient, str], Any]
):  # B21
    caller = api(bob, credential="key")
    send_request(caller, "device/1")  # fills the caches of the process
    with captured_statements() as hidden_statements:
        hidden_response = send_request(caller, f"device/{hidden_lamp}")
    with captured_statements() as missing_statements:
        missing_response = send_request(caller, f"device/{MISSING_ID}")

    assert hidden_response.status_code == 404
    assert not hidden_response.content or error_of(hidden_response) == (404, "record_not_found", None)
    assert (hidden_response.content, hidden_response.get("ETag")) == (missing_response.content, None)
    assert len(hidden_statements) > 0 and hidden_statements == missing_statements


def test_hidden_and_missing_references_run_the_same_statements(hidden_lamp: str, bob: User):  # B21
    field("device", "twin", target="device")
    visible_lamp = record("device", name="Other")
    caller = api(bob, credential="key")
    statement_lists = []
    for sys_id in ("1", hidden_lamp, MISSING_ID):
        with captured_statements() as statements:
            assert error_of(caller.patch(f"device/{visible_lamp}", {"twin": sys_id})) == (422, "invalid_value", "twin")
        statement_lists.append(statements)
    assert statement_lists[1] == statement_lists[2]


class TestHiddenVersion:
    """Without `sys_version`, nothing reveals how often a record was changed."""

    @pytest.fixture
    def visible_lamps(self, hidden_lamp: str) -> list[str]:
        """Two lamps that look the same to Bob; one of them has been changed."""
        rule("read", "device", "sys_version", roles=["keeper"])
        return [record("device", name="x", sys_version=version) for version in (0, 3)]

    @pytest.mark.parametrize("send_request", REQUESTS.values(), ids=REQUESTS.keys())
    def test_changed_record_looks_like_an_unchanged_one(
        self, visible_lamps: list[str], bob: User, send_request: Callable[[ApiClient, str], Any]
    ):
        caller = api(bob, credential="key")
        send_request(caller, "device/1")  # fills the caches of the process
        outcomes = []
        for lamp in visible_lamps:
            with captured_statements() as statements:
                response = send_request(caller, f"device/{lamp}")
            comparable_content = response.content.replace(lamp.encode(), b"id")
            outcomes.append(
                (
                    response.status_code,
                    re.sub(rb"\d\d:\d\d:\d\d", b"time", comparable_content),
                    response.get("ETag"),
                    statements,
                )
            )
        assert outcomes[0] == outcomes[1]
        assert outcomes[0][2] is None and outcomes[0][0] in (200, 412)


def test_comparison_detects_a_difference(hidden_lamp: str, bob: User):
    """The comparison would be useless if it never found a difference."""
    caller = api(bob, credential="key")
    caller.get("device/1")
    with captured_statements() as first_statements:
        caller.get("device/1")
    with captured_statements() as second_statements:
        caller.get("device/1", fields="name")
    assert first_statements != second_statements
