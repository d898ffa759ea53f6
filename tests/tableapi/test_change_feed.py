"""`GET /rest/v1/changes/{table}` and `…/{sys_id}/history`."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection, transaction

from accounts.models import User
from system import properties
from system.models import Change
from system.property_definitions import CHANGE_HISTORY_DAYS
from tableapi.models import Column, Table
from tableapi.read import context
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, record, rule, table

pytestmark = pytest.mark.django_db(transaction=True)
FEED = "/rest/v1/changes/device"


@pytest.fixture
def device(db: Any) -> Table:
    new_table = table("device")
    field("device", "name")
    field("device", "rank", "integer")
    field("device", "story", "text")
    for operation in ("create", "write", "delete"):
        rule(operation, "device")
    return new_table


@pytest.fixture
def readable_device(device: Table) -> Table:
    rule("read", "device")
    return device


def create_device(caller: Any, **values: Any) -> str:
    return str(data_of(caller.post("device", values))[0]["sys_id"])


class FeedReader:
    """Reads the feed and continues after the last cursor."""

    def __init__(self, user: User) -> None:
        self.caller = api(user)
        self.cursor = ""

    def read(self, **params: Any) -> list[dict[str, Any]]:
        cursor_parameter = {"since": self.cursor} if self.cursor else {}
        query_string = "&".join(f"{name}={value}" for name, value in {**cursor_parameter, **params}.items())
        response = self.caller.get(f"{FEED}?{query_string}")
        entries: list[dict[str, Any]] = data_of(response)
        self.cursor = response.json()["cursor"]
        return entries

    def read_names(self) -> list[Any]:
        return [entry.get("name", entry.get("removed")) for entry in self.read()]


def test_feed_starts_with_the_oldest_change_and_continues_after_the_cursor(readable_device: Table, bob: User):
    reader, caller = FeedReader(bob), api(bob)
    ids = [create_device(caller, name=name) for name in "abc"]
    assert reader.read_names() == ["a", "b", "c"]
    cursor = reader.cursor
    assert reader.read_names() == [] and reader.cursor == cursor
    caller.patch(f"device/{ids[0]}", {"name": "A"})
    (entry,) = reader.read()
    assert (entry["sys_id"], entry["name"], entry["sys_version"]) == (ids[0], "A", 1)


def test_record_with_many_changes_is_returned_once_with_current_values(readable_device: Table, bob: User):
    reader, caller = FeedReader(bob), api(bob)
    sys_id = create_device(caller, name="a")
    create_device(caller, name="b")
    for rank in range(3):
        caller.patch(f"device/{sys_id}", {"rank": rank})
    assert [(entry["name"], entry["rank"]) for entry in reader.read()] == [("b", None), ("a", 2)]


def test_deleted_record_is_returned_as_removed(readable_device: Table, bob: User):
    reader, caller = FeedReader(bob), api(bob)
    sys_id = create_device(caller, name="a")
    reader.read()
    caller.delete(f"device/{sys_id}")
    assert reader.read() == [{"sys_id": sys_id, "removed": True}]
    assert reader.read() == []


def test_pages_are_linked_and_keep_the_order(readable_device: Table, bob: User):
    reader, caller = FeedReader(bob), api(bob)
    for name in "abcde":
        create_device(caller, name=name)
    assert [entry["name"] for entry in reader.read(sysparm_limit=2)] == ["a", "b"]
    response = reader.caller.get(f"{FEED}?since={reader.cursor}&sysparm_limit=2&sysparm_fields=name")
    assert [entry["name"] for entry in data_of(response)] == ["c", "d"]
    assert 'rel="next"' in response["Link"] and "sysparm_fields=name" in response["Link"]
    reader.cursor = response.json()["cursor"]
    assert reader.read_names() == ["e"]


def test_change_of_an_open_transaction_is_not_skipped(readable_device: Table, bob: User):
    """Otherwise, a cursor would skip a change that commits later with a lower number."""
    reader, caller = FeedReader(bob), api(bob)
    other_connection = connection.copy()
    try:
        with other_connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("SELECT pg_current_xact_id()")
            create_device(caller, name="a")
            assert reader.read_names() == []
            cursor.execute("COMMIT")
        assert reader.read_names() == ["a"]
    finally:
        other_connection.close()


def test_record_that_became_unreadable_is_returned_like_a_deleted_one(device: Table, bob: User):
    rule("read", "device", condition="rank<5")
    reader, caller = FeedReader(bob), api(bob)
    hidden_id, deleted_id = create_device(caller, name="a", rank=1), create_device(caller, name="b", rank=1)
    reader.read()
    caller.patch(f"device/{hidden_id}", {"rank": 9})
    caller.delete(f"device/{deleted_id}")
    assert reader.read() == [{"sys_id": hidden_id, "removed": True}, {"sys_id": deleted_id, "removed": True}]


def test_cleared_reference_is_told_to_callers_who_can_read_it(readable_device: Table, bob: User):
    field("device", "part_of", target="device")
    field("device", "parts", "list", target="device")
    rule("read", "device", "parts", roles=["itil"])
    reader, caller = FeedReader(bob), api(bob)
    lamp, table_lamp = create_device(caller, name="a"), create_device(caller, name="b")
    bulb, cable = create_device(caller, name="c", part_of=table_lamp), create_device(caller, name="d")
    query_rows("UPDATE records.device SET parts = ARRAY[%s] WHERE sys_id = %s", lamp, cable)
    reader.read()
    caller.patch(f"device/{bulb}", {"name": "e"})
    caller.patch(f"device/{cable}", {"name": "f"})
    caller.patch(f"device/{bulb}", {"name": "c"})
    caller.delete(f"device/{lamp}")  # after the deletion, the hidden change is the last one of the cable
    assert [entry.get("name", entry["sys_id"]) for entry in reader.read()] == ["f", "c", lamp]
    assert reader.read() == []
    caller.delete(f"device/{table_lamp}")
    assert [(entry["sys_id"], entry.get("part_of")) for entry in reader.read()] == [(bulb, None), (table_lamp, None)]
    newest = history_of(bob, bulb)[0]
    assert (newest["operation"], newest["sys_version"]) == ("clear", 2)
    assert newest["fields"] == {"part_of": {"old": table_lamp, "new": None}}
    assert [entry["operation"] for entry in history_of(bob, cable)] == ["update", "create"]


def test_cleared_reference_is_told_by_the_rules_of_the_records_own_table(readable_device: Table, bob: User):
    field("device", "part_of", target="device")
    for name in ("laptop", "phone"):
        table(name, parent="device")
    rule("read", "device", "part_of", roles=["itil"])
    rule("read", "laptop", "part_of")
    lamp = create_device(api(bob), name="a")
    laptop, phone = record("laptop", part_of=lamp), record("phone", part_of=lamp)
    reader = FeedReader(bob)
    reader.read()
    api(bob).delete(f"device/{lamp}")
    assert Change.objects.filter(operation="clear", record_id__in=(laptop, phone)).count() == 2
    assert [entry["sys_id"] for entry in reader.read()] == [laptop, lamp]


def test_record_that_a_cleared_reference_hides_is_removed(device: Table, bob: User):
    field("device", "part_of", target="device")
    rule("read", "device", condition="part_ofISNOTEMPTY^ORname=a")
    rule("read", "device", "part_of", roles=["itil"])
    lamp = create_device(api(bob), name="a")
    bulb = record("device", name="b", part_of=lamp)
    reader = FeedReader(bob)
    reader.read()
    api(bob).delete(f"device/{lamp}")
    assert reader.read() == [{"sys_id": bulb, "removed": True}, {"sys_id": lamp, "removed": True}]


def test_record_that_was_hidden_twice_is_removed_once(device: Table, alice: User, bob: User):
    rule("read", "device", condition="rank<5")
    reader = FeedReader(bob)
    sys_id = create_device(api(bob), name="a", rank=1)
    reader.read()
    for rank in (9, 1, 9):
        api(alice).patch(f"device/{sys_id}", {"rank": rank})
    assert reader.read() == [{"sys_id": sys_id, "removed": True}]


def test_deletion_is_hidden_if_a_rule_needs_another_record(device: Table, alice: User, bob: User):
    field("device", "parent", target="device")
    rule("read", "device", condition="parent.rank<5^ORrank<5")
    reader, admin = FeedReader(bob), api(alice)
    parent_id = create_device(admin, name="parent", rank=9)
    child_id = create_device(admin, name="child", rank=9, parent=parent_id)
    admin.delete(f"device/{child_id}")
    admin.patch(f"device/{parent_id}", {"rank": 1})
    assert [entry.get("name") for entry in reader.read()] == ["parent"]


def test_records_with_the_same_fields_are_all_returned(readable_device: Table, bob: User):
    for _ in range(2):
        create_device(api(bob), name="a")
    assert FeedReader(bob).read(sysparm_fields="name") == [{"name": "a"}, {"name": "a"}]


def test_deleted_record_of_a_child_table_with_an_inherited_rule_is_removed(device: Table, bob: User):
    rule("read", "device", condition="rank<5")
    table("phone", parent=device)
    reader = FeedReader(bob)
    sys_id = data_of(api(bob).post("phone", {"name": "a", "rank": 1}))[0]["sys_id"]
    reader.read()
    api(bob).delete(f"phone/{sys_id}")
    assert reader.read() == [{"sys_id": sys_id, "removed": True}]


def test_changes_of_unreadable_records_are_not_returned(device: Table, bob: User, alice: User):
    rule("read", "device", condition="rank<5")
    reader, admin = FeedReader(bob), api(alice)
    create_device(api(bob), name="a", rank=1)
    reader.read()
    cursor = reader.cursor
    hidden_id = create_device(admin, name="secret", rank=9)
    admin.patch(f"device/{hidden_id}", {"name": "other"})
    admin.delete(f"device/{hidden_id}")
    assert reader.read() == [] and reader.cursor == cursor


def test_deletion_is_hidden_if_a_rule_needs_a_truncated_value(device: Table, bob: User):
    """The log contains only the start of long values."""
    rule("read", "device", condition="storyENDSWITHopen")
    reader, caller = FeedReader(bob), api(bob)
    long_id, short_id = create_device(caller, story="x" * 2_000 + "open"), create_device(caller, story="open")
    reader.read()
    for sys_id in (long_id, short_id):
        caller.delete(f"device/{sys_id}")
    assert reader.read() == [{"sys_id": short_id, "removed": True}]


def test_change_is_hidden_if_a_rule_depends_on_the_last_writer(device: Table, bob: User, alice: User):
    rule("read", "device", condition=f"sys_updated_by={bob.pk}")
    reader = FeedReader(bob)
    sys_id = create_device(api(bob), name="a")
    assert reader.read_names() == ["a"]
    api(alice).patch(f"device/{sys_id}", {"name": "b"})
    assert reader.read() == []


def test_records_of_child_tables_are_in_the_feed_of_the_parent(readable_device: Table, bob: User):
    table("phone", parent="device")
    field("phone", "line")
    rule("create", "phone")
    rule("delete", "phone")
    rule("read", "phone", condition="line!=17")
    reader, caller = FeedReader(bob), api(bob)
    ids = [data_of(caller.post("phone", {"name": line, "line": line}))[0].get("sys_id") for line in ("16", "17")]
    assert [entry["name"] for entry in reader.read()] == ["16"] and ids[1] is None
    caller.delete(f"device/{ids[0]}")
    assert reader.read() == [{"sys_id": ids[0], "removed": True}]


def test_same_id_in_another_table_is_a_different_record(readable_device: Table, alice: User, bob: User):
    """Imported ids are unique only within a table."""
    table("vault")
    field("vault", "name")
    rule("create", "vault")
    api(alice).post("device", {"sys_id": "old1", "name": "a"})
    api(alice).post("vault", {"sys_id": "old1", "name": "secret"})
    reader = FeedReader(bob)
    assert reader.read_names() == ["a"]
    assert [entry["fields"]["name"]["new"] for entry in history_of(bob, "old1")] == ["a"]


def test_values_of_another_table_do_not_affect_visibility(device: Table, alice: User, bob: User):
    rule("read", "device", condition="rank<5^name!=x")
    table("vault")
    field("vault", "name")
    api(alice).post("device", {"sys_id": "old1", "name": "a", "rank": 1})
    reader = FeedReader(bob)
    assert reader.read_names() == ["a"]
    api(alice).patch("device/old1", {"name": "x"})
    api(alice).post("vault", {"sys_id": "old1", "name": "secret"})
    api(alice).delete("vault/old1")
    assert reader.read() == [{"sys_id": "old1", "removed": True}]


def test_hidden_column_is_not_in_the_feed(readable_device: Table, bob: User):
    rule("read", "device", "rank", roles=["itil"])
    create_device(api(bob), name="a")
    (entry,) = FeedReader(bob).read()
    assert "rank" not in entry
    assert error_of(api(bob).get(f"{FEED}?sysparm_fields=rank")) == (400, "no_fields", "sysparm_fields")


def test_cursor_is_valid_for_one_caller_only(readable_device: Table, bob: User, alice: User):
    create_device(api(bob), name="a")
    reader = FeedReader(bob)
    reader.read()
    cursor_error = (400, "invalid_parameter", "since")
    assert error_of(api(alice).get(f"{FEED}?since={reader.cursor}")) == cursor_error
    assert error_of(api(bob).get(f"{FEED}?since=nonsense")) == cursor_error
    assert error_of(api(bob).get("/rest/v1/changes/none")) == (404, "table_not_found", None)


def test_old_cursor_expires(readable_device: Table, bob: User):
    create_device(api(bob), name="a")
    reader = FeedReader(bob)
    reader.read()
    for days, status in ((29, 200), (31, 410)):
        later = datetime.now(UTC) + timedelta(days=days)
        with patch.object(context, "now", lambda later=later: later):
            assert api(bob).get(f"{FEED}?since={reader.cursor}").status_code == status
    with transaction.atomic():
        properties.put(CHANGE_HISTORY_DAYS, "10")
    later = datetime.now(UTC) + timedelta(days=11)
    with patch.object(context, "now", lambda: later):
        assert error_of(api(bob).get(f"{FEED}?since={reader.cursor}")) == (410, "cursor_expired", None)


def history_of(user: User, sys_id: str, **params: Any) -> list[dict[str, Any]]:
    return list(data_of(api(user).get(f"device/{sys_id}/history", **params)))


def test_history_lists_the_newest_change_first(readable_device: Table, bob: User):
    sys_id = create_device(api(bob), name="a", rank=1)
    api(bob).patch(f"device/{sys_id}", {"rank": 2})
    newest, oldest = history_of(bob, sys_id)
    assert newest["operation"] == "update" and newest["fields"] == {"rank": {"old": 1, "new": 2}}
    assert (newest["sys_version"], newest["sys_updated_by"]) == (1, bob.pk)
    assert oldest["operation"] == "create"
    assert oldest["fields"] == {"name": {"old": None, "new": "a"}, "rank": {"old": None, "new": 1}}
    assert history_of(bob, sys_id, limit=1) == [newest]


def test_history_pages_are_linked(readable_device: Table, bob: User):
    sys_id = create_device(api(bob), name="a")
    for rank in range(4):
        api(bob).patch(f"device/{sys_id}", {"rank": rank})
    first_page = api(bob).get(f"device/{sys_id}/history", limit=3)
    next_url = first_page["Link"][1:].partition(">")[0]
    second_page = api(bob).get("/" + next_url.split("/", 3)[3])
    assert [entry["sys_version"] for entry in [*data_of(first_page), *data_of(second_page)]] == [4, 3, 2, 1, 0]
    assert "Link" not in second_page


def test_history_omits_columns_that_are_not_always_readable(readable_device: Table, bob: User):
    rule("read", "device", "rank", condition="rank<5")
    rule("read", "device", "story", roles=["itil"])
    sys_id = create_device(api(bob), name="a", rank=1)
    query_rows("UPDATE records.device SET story = 'x' WHERE sys_id = %s", sys_id)
    api(bob).patch(f"device/{sys_id}", {"rank": 2})
    assert [entry["fields"] for entry in history_of(bob, sys_id)] == [{"name": {"old": None, "new": "a"}}]


def test_history_of_a_hidden_record_is_like_that_of_a_missing_one(device: Table, bob: User):
    rule("read", "device", condition="rank<5")
    sys_id = create_device(api(bob), name="a", rank=4)
    api(bob).patch(f"device/{sys_id}", {"rank": 9})
    responses = [api(bob).get(f"device/{record_id}/history") for record_id in (sys_id, "0" * 18, "NONE")]
    assert [response.status_code for response in responses] == [404] * 3
    assert len({response.content for response in responses}) == 1


def test_recreated_column_has_no_history(readable_device: Table, bob: User):
    sys_id = create_device(api(bob), name="a", rank=1)
    Column.objects.get(table=readable_device, name="rank").delete()
    field("device", "rank", "integer")
    assert [list(entry["fields"]) for entry in history_of(bob, sys_id)] == [["name"]]


def test_record_with_a_reused_id_has_only_its_own_history(readable_device: Table, alice: User):
    body = {"sys_id": "old1", "name": "a"}
    for name in ("a", "b"):
        api(alice).post("device", body | {"name": name})
        if name == "a":
            api(alice).delete("device/old1")
    assert [entry["fields"]["name"]["new"] for entry in history_of(alice, "old1")] == ["b"]


def test_history_of_a_product_record_has_no_secrets(alice: User):
    caller = api(alice)
    sys_id = data_of(caller.post("user", {"login": "zoe", "password": "correct horse 77"}))[0]["sys_id"]
    caller.patch(f"user/{sys_id}", {"password": "correct horse 78", "first_name": "Zoe"})
    newest, oldest = data_of(caller.get(f"user/{sys_id}/history"))
    assert newest["fields"] == {"first_name": {"old": None, "new": "Zoe"}}
    assert "password" not in oldest["fields"]
