"""Comments on records: who may read, write, change and delete them, and whom they mention."""

from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from accounts.models import User
from system.models import DeletionLogEntry
from tableapi.attached.comments import MENTION
from tableapi.catalogue import definitions
from tableapi.models import Comment, Rule, Table
from tests.tableapi.world import api, data_of, error_of, field, next_page_url, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device() -> Table:
    device = table("device")
    field("device", "name")
    return device


@pytest.fixture
def lamp(device: Table) -> str:
    rule("read", "device")
    return record("device", name="Lamp")


def test_comment_is_returned_to_readers_of_the_record(lamp: str, alice: User, bob: User):
    created_comments = data_of(api(bob).post(f"device/{lamp}/comments", {"text": "Hello @alice, not b@alice.example"}))
    listed_comments = data_of(api(alice).get(f"device/{lamp}/comments"))

    assert created_comments == listed_comments and len(listed_comments) == 1
    assert listed_comments[0]["text"].startswith("Hello") and listed_comments[0]["sys_created_by"] == bob.pk
    assert listed_comments[0]["mentions"] == [alice.pk]


def test_comments_are_paginated_newest_first(lamp: str, bob: User):
    for number in range(3):
        api(bob).post(f"device/{lamp}/comments", {"text": str(number)})
    first_page = api(bob).get(f"device/{lamp}/comments", limit=2)
    next_url = urlsplit(next_page_url(first_page))
    second_page = api(bob).get(f"{next_url.path}?{next_url.query}")

    assert [entry["text"] for entry in data_of(first_page)] == ["2", "1"]
    assert [entry["text"] for entry in data_of(second_page)] == ["0"] and "Link" not in second_page


def test_unreadable_and_missing_records_get_the_same_404(device: Table, bob: User):
    rule("read", "device", condition="name=a")
    hidden_id = record("device", name="b")
    Comment(table_key=device.pk, record_id=hidden_id, text="secret").save()
    for method in ("get", "post"):
        hidden_response, missing_response = [
            getattr(api(bob), method)(f"device/{sys_id}/comments", *([{"text": "a"}] if method == "post" else []))
            for sys_id in (hidden_id, "0" * 18)
        ]
        assert hidden_response.status_code == missing_response.status_code == 404
        assert hidden_response.content == missing_response.content


def test_only_authors_change_comments_but_administrators_can_delete_them(lamp: str, alice: User, bob: User):
    path = f"device/{lamp}/comments"
    first_id, second_id = (data_of(api(bob).post(path, {"text": text}))[0]["sys_id"] for text in ("a", "b"))

    assert data_of(api(bob).patch(f"{path}/{first_id}", {"text": "c"}))[0]["text"] == "c"
    assert error_of(api(alice).patch(f"{path}/{first_id}", {"text": "d"}))[:2] == (403, "access_denied")
    assert data_of(api(alice).delete(f"{path}/{second_id}")) == [{"sys_id": second_id}]
    assert data_of(api(bob).delete(f"{path}/{first_id}")) == [{"sys_id": first_id}]
    assert error_of(api(bob).delete(f"{path}/{first_id}"))[:2] == (404, "record_not_found")


def test_without_a_rule_only_administrators_can_comment(lamp: str, alice: User, bob: User):
    Rule.objects.filter(table__name="sys_comment").delete()

    assert error_of(api(bob).post(f"device/{lamp}/comments", {"text": "a"}))[:2] == (403, "access_denied")
    assert api(alice).post(f"device/{lamp}/comments", {"text": "a"}).status_code == 201


def test_rule_condition_is_checked_against_the_comment(lamp: str, bob: User):
    Rule.objects.filter(table__name="sys_comment").delete()
    rule("create", "sys_comment", condition="textSTARTSWITHOK")
    path = f"device/{lamp}/comments"

    assert error_of(api(bob).post(path, {"text": "a"}))[:2] == (403, "access_denied")
    assert not Comment.objects.exists()
    comment_id = data_of(api(bob).post(path, {"text": "OK"}))[0]["sys_id"]
    assert error_of(api(bob).patch(f"{path}/{comment_id}", {"text": "b"}))[:2] == (403, "access_denied")
    assert api(bob).patch(f"{path}/{comment_id}", {"text": "OK, done"}).status_code == 200
    assert Comment.objects.get().text == "OK, done"


def test_comments_are_not_exposed_as_a_table(lamp: str, alice: User):
    assert error_of(api(alice).get("sys_comment"))[:2] == (404, "table_not_found")
    assert error_of(api(alice).post("sys_comment", {"text": "a"}))[:2] == (404, "table_not_found")


def test_columns_cannot_refer_to_comments(device: Table):
    with pytest.raises(ValidationError, match="cannot refer to this table"):
        field("device", "comment", target="sys_comment")


def test_comments_cannot_be_read_through_an_earlier_reference(
    lamp: str, alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(definitions, "HIDDEN_TABLES", frozenset())
    field("device", "comment", target="sys_comment")
    rule("read", "sys_comment")
    api(alice).post(f"device/{lamp}/comments", {"text": "a"})
    for user in (alice, bob):
        response = api(user).get(f"device/{lamp}?sysparm_fields=comment.text")
        assert error_of(response)[:2] == (400, "no_fields")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (None, (400, "invalid_json")),
        ([], (400, "invalid_json")),
        ({"text": "a", "mentions": []}, (400, "invalid_json")),
        ({"text": 1}, (422, "invalid_value")),
        ({"text": " "}, (422, "mandatory")),
        ({"text": "a" * 10_001}, (422, "invalid_value")),
        ({"text": " ".join(f"@u{number}" for number in range(21))}, (422, "invalid_value")),
    ],
)
def test_invalid_comment_is_refused(body: object, error: tuple[int, str], lamp: str, bob: User):
    assert error_of(api(bob).post(f"device/{lamp}/comments", body))[:2] == error
    assert not Comment.objects.exists()


def test_at_sign_after_a_letter_or_symbol_is_not_a_mention():
    """Otherwise, finding mentions in a long run of @ would take quadratic time."""
    assert MENTION.findall("a@bob a+@bob -@bob (@bob, @carl.)") == ["bob", "carl"]


def test_only_readable_users_are_mentioned(lamp: str, alice: User, bob: User):
    Rule.objects.filter(table__name="user").delete()
    rule("read", "user", condition="login=bob")

    comments = data_of(api(bob).post(f"device/{lamp}/comments", {"text": "@alice @bob @nobody"}))

    assert comments[0]["mentions"] == [bob.pk]


def test_comments_of_a_deleted_record_are_kept_as_long_as_its_log_entry(device: Table, alice: User):
    lamp = "imported1"
    api(alice).post("device", {"sys_id": lamp, "name": "Lamp"})
    api(alice).post(f"device/{lamp}/comments", {"text": "a"})
    api(alice).delete(f"device/{lamp}")
    log_entry = DeletionLogEntry.objects.get(record_id=lamp)
    imported_id = data_of(api(alice).post("device", {"sys_id": lamp, "name": "another"}))[0]["sys_id"]

    assert imported_id == lamp and data_of(api(alice).get(f"device/{lamp}/comments")) == []
    assert Comment.objects.get().deletion_id == log_entry.pk
    DeletionLogEntry.objects.filter(pk=log_entry.pk)._raw_delete("default")
    assert not Comment.objects.exists()


def test_comments_of_a_record_are_the_same_in_all_tables_of_its_family(device: Table, alice: User):
    table("laptop", parent="device")
    laptop = record("laptop", name="L")
    api(alice).post(f"laptop/{laptop}/comments", {"text": "a"})

    assert [entry["text"] for entry in data_of(api(alice).get(f"device/{laptop}/comments"))] == ["a"]


def test_designer_has_no_link_to_a_list_of_comments(as_alice: Client):
    page = as_alice.get("/design/sys_comment/").content.decode()

    assert "sys_comment" in page and "/tables/sys_comment/" not in page


def test_openapi_document_has_no_table_of_comments(as_alice: Client):
    assert not [path for path in as_alice.get("/api/schema").json()["paths"] if "sys_comment" in path]
