"""The activity of a record: comments, history, following, and what of it is hidden from whom."""

import re
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tableapi.models import Comment, Follower, Rule, Table
from tests.support.pages import without_token
from tests.support.users import make_user, signed_in_client
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import api, field, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def device() -> Table:
    device = table("device")
    field("device", "name", label="Name")
    field("device", "state", choices={"1": "New", "2": "Closed"}, label="State of it")
    field("device", "secret", label="Secret thing")
    field("device", "owner", target="user", label="Owner")
    field("device", "due", "datetime", label="Due at")
    field("device", "notes", "wysiwyg", label="Notes")
    for operation in ("create", "read", "write", "delete"):
        rule(operation, "device")
    rule("read", "device", "secret", roles=["itil"])
    return device


@pytest.fixture
def lamp(device: Table, alice: User) -> str:
    response = api(alice).post("device", {"name": "Lamp", "state": "1"})
    return str(response.json()["data"][0]["sys_id"])


def text_of(response: Any) -> str:
    """The text of a page, without tags and with single spaces."""
    return " ".join(re.sub(r"<[^>]*>", " ", response.content.decode()).split())


def activity_path(sys_id: str, table_name: str = "device") -> str:
    return f"/tables/{table_name}/{sys_id}/activity/"


def test_changes_are_shown_with_labels_and_display_values(lamp: str, alice: User, bob: User, as_bob: Client):
    bob.time_zone = "Europe/Berlin"
    bob.save()
    changes = {"state": "2", "owner": bob.pk, "due": "2026-07-01 22:30:00", "notes": "<p>Very <b>hot</b> &amp; dry</p>"}
    assert api(alice).patch(f"device/{lamp}", changes).status_code == 200

    text = text_of(as_bob.get(activity_path(lamp)))

    assert "alice changed the record" in text and "alice created the record" in text
    assert "State of it: New → Closed" in text
    assert "Owner: empty → bob" in text
    assert "Due at: empty → 2 Jul 2026, 00:30" in text
    assert "Notes: empty → Very hot &amp; dry" in text
    assert lamp not in text and bob.pk not in text


def test_long_values_are_shortened(lamp: str, alice: User, as_bob: Client):
    api(alice).patch(f"device/{lamp}", {"name": "long " * 50})

    text = text_of(as_bob.get(activity_path(lamp)))
    assert "long long" in text and "…" in text and text.count("long") < 100


def test_comments_and_changes_are_one_stream_with_filters(lamp: str, alice: User, as_bob: Client):
    as_bob.post(f"/tables/device/{lamp}/comments/", {"comment-text": "First words"})
    api(alice).patch(f"device/{lamp}", {"name": "Torch"})

    texts = {name: text_of(as_bob.get(activity_path(lamp), {"show": name})) for name in ("all", "comments", "changes")}
    assert "First words" in texts["all"] and "→ Torch" in texts["all"]
    assert "First words" in texts["comments"] and "→ Torch" not in texts["comments"]
    assert "First words" not in texts["changes"] and "→ Torch" in texts["changes"]


@pytest.mark.parametrize("comment_numbers", [set(), {0, 1, 2, 20, 21, 44}, set(range(45)), set(range(25, 45))])
def test_pages_contain_each_entry_once_in_order(comment_numbers: set[int], device: Table, lamp: str, alice: User):
    for number in range(45):
        if number in comment_numbers:
            api(alice).post(f"device/{lamp}/comments", {"text": f"entry {number}."})
        else:
            api(alice).patch(f"device/{lamp}", {"name": f"entry {number}."})
    as_alice = signed_in_client(alice)
    path, shown, page_count = activity_path(lamp), [], 0
    while path:
        content = as_alice.get(path).content.decode()
        shown += [
            int(number) for number in re.findall(r"<(?:ins|div class=\"comment-content\")>entry (\d+)\.", content)
        ]
        link = re.search(r'id="activity-older"><a class="button secondary" href="([^"]+)"', content)
        path, page_count = link[1].replace("&amp;", "&") if link else "", page_count + 1

    assert sorted(shown) == list(range(45)) and page_count == 3
    comments = [number for number in shown if number in comment_numbers]
    changes = [number for number in shown if number not in comment_numbers]
    assert comments == sorted(comments, reverse=True) and changes == sorted(changes, reverse=True)


def test_hidden_times_and_authors_are_not_shown(device: Table, lamp: str, alice: User, as_bob: Client):
    for column in ("sys_updated_at", "sys_updated_by"):
        rule("read", "device", column, roles=["itil"])
    for number in range(25):
        api(alice).patch(f"device/{lamp}", {"name": f"name {number}."})
    path, text = activity_path(lamp), ""
    while path:
        response = as_bob.get(path)
        text += text_of(response)
        link = re.search(r'id="activity-older"><a class="button secondary" href="([^"]+)"', response.content.decode())
        path = link[1].replace("&amp;", "&") if link else ""
    assert [f"→ name {number}." in text for number in range(25)] == [True] * 25
    assert "alice" not in text and " ago" not in text and "now" not in text


def test_error_of_a_fragment_is_shown_at_the_top_of_the_activity(lamp: str, as_bob: Client):
    headers = {"HX-Request": "true", "HX-Target": "activity-files"}
    response = as_bob.post(f"/tables/device/{lamp}/comments/1/delete/", headers=headers)
    assert response.status_code == 404 and response["HX-Retarget"] == "#activity"
    assert response.content.strip().startswith(b'<section id="activity"')
    assert b'role="alert">There is no such record.' in response.content


def test_cursor_of_another_record_is_refused(lamp: str, alice: User, as_alice: Client):
    for number in range(25):
        api(alice).patch(f"device/{lamp}", {"name": str(number)})
    other = record("device", name="Other")
    link = re.search(r'activity-older"><a class="button secondary" href="[^"]+(\?[^"]+)"',
                     as_alice.get(activity_path(lamp)).content.decode())  # fmt: skip
    assert link
    response = as_alice.get(activity_path(other) + link[1].replace("&amp;", "&"), headers={"Accept": "text/html"})
    assert response.status_code == 400 and b"cursor" in response.content


def test_fragments_contain_only_the_requested_part(lamp: str, as_bob: Client):
    def fragment(target: str) -> str:
        headers = {"HX-Request": "true", "HX-Target": target}
        return as_bob.get(activity_path(lamp), headers=headers).content.decode().strip()

    assert as_bob.get(activity_path(lamp)).content.startswith(b"<!doctype html>")
    assert fragment("activity").startswith('<section id="activity"')
    assert fragment("other").startswith('<section id="activity"')
    assert fragment("activity-stream").startswith('<div id="activity-stream"')
    assert fragment("activity-files").startswith('<div id="activity-files"')
    assert fragment("activity-older").startswith('<ol class="entries"')


def test_author_changes_and_deletes_a_comment(lamp: str, as_bob: Client):
    response = as_bob.post(f"/tables/device/{lamp}/comments/", {"comment-text": "One\r\ntwo"})
    assert response.status_code == 302 and response["Location"] == activity_path(lamp) + "#activity"
    comment = Comment.objects.get()
    assert comment.text == "One\ntwo"

    as_bob.post(f"/tables/device/{lamp}/comments/{comment.pk}/", {"comment-text": "Three"})
    assert "Three" in text_of(as_bob.get(activity_path(lamp)))
    as_bob.post(f"/tables/device/{lamp}/comments/{comment.pk}/delete/")
    assert "Three" not in text_of(as_bob.get(activity_path(lamp))) and not Comment.objects.exists()


def test_only_authors_and_administrators_get_the_buttons_that_work_for_them(
    lamp: str, bob: User, as_alice: Client, as_bob: Client
):
    api(bob).post(f"device/{lamp}/comments", {"text": "mine"})
    other = signed_in_client(make_user("olga"))
    comment = Comment.objects.get()

    assert "Save comment" in text_of(as_bob.get(activity_path(lamp)))
    assert "Save comment" not in text_of(as_alice.get(activity_path(lamp)))
    assert "Delete comment" in text_of(as_alice.get(activity_path(lamp)))
    assert "Delete comment" not in text_of(other.get(activity_path(lamp)))
    response = other.post(f"/tables/device/{lamp}/comments/{comment.pk}/", {"comment-text": "x"})
    assert response.status_code == 403 and "You can only change your own comments." in text_of(response)
    assert Comment.objects.get().text == "mine"


def test_refused_comment_is_shown_again_with_the_error(lamp: str, as_bob: Client):
    response = as_bob.post(f"/tables/device/{lamp}/comments/", {"comment-text": "<b>" + "x" * 10_000})
    assert response.status_code == 422 and "must not exceed 10,000 characters" in text_of(response)
    assert b"&lt;b&gt;xxx" in response.content and not Comment.objects.exists()
    assert as_bob.post(f"/tables/device/{lamp}/comments/").status_code == 422
    assert as_bob.post(f"/tables/device/{lamp}/comments/", {"comment-text": "a\x00b"}).status_code in (400, 422)


def test_text_is_shown_as_text_with_links_and_mentions(lamp: str, alice: User, bob: User, as_bob: Client):
    text = "<script>x</script> https://a.example/?a=1&b=2. @alice javascript:alert(1) a@b.example"
    api(bob).post(f"device/{lamp}/comments", {"text": text})

    content = as_bob.get(activity_path(lamp)).content.decode()
    assert "<script>x" not in content and "&lt;script&gt;x" in content
    assert '<a href="https://a.example/?a=1&amp;b=2" rel="noopener nofollow">' in content
    assert '<span class="mention">@alice</span>' in content and 'href="javascript' not in content
    assert content.count('class="mention"') == 1


def test_comment_form_is_hidden_from_those_who_may_not_comment(lamp: str, as_alice: Client, as_bob: Client):
    Rule.objects.filter(table__name="sys_comment").delete()

    assert b"comment-text" not in as_bob.get(activity_path(lamp)).content
    response = as_bob.post(f"/tables/device/{lamp}/comments/", {"comment-text": "a"})
    assert response.status_code == 403 and b"You are not allowed to comment" in response.content
    assert b"comment-text" in as_alice.get(activity_path(lamp)).content


def test_following_starts_and_stops(lamp: str, bob: User, as_bob: Client):
    path = f"/tables/device/{lamp}"
    assert "Unfollow" not in text_of(as_bob.get(activity_path(lamp)))
    as_bob.post(f"{path}/follow/")
    assert Follower.objects.get().user_id == bob.pk and "Unfollow" in text_of(as_bob.get(activity_path(lamp)))
    fragment = as_bob.post(f"{path}/unfollow/", headers={"HX-Request": "1", "HX-Target": "activity"})
    assert fragment.status_code == 200 and "Unfollow" not in text_of(fragment) and not Follower.objects.exists()


def test_forms_need_a_csrf_token_and_use_names_that_no_column_has(lamp: str, bob: User):
    client = signed_in_client(bob, enforce_csrf_checks=True)
    for path in ("comments/", "follow/", "attachments/"):
        assert client.post(f"/tables/device/{lamp}/{path}", {"comment-text": "a"}).status_code == 403
    content = client.get(activity_path(lamp)).content.decode().partition("<main")[2]
    names = set(re.findall(r'<(?:input|textarea|select|button)[^>]* name="([^"]+)"', content)) - {"csrfmiddlewaretoken"}
    assert names and not [name for name in names if re.fullmatch("[a-z][a-z0-9_]*", name)]


def test_hidden_columns_leave_no_trace(lamp: str, alice: User, as_alice: Client, as_bob: Client):
    before = as_bob.get(activity_path(lamp), {"show": "changes"}).content
    api(alice).patch(f"device/{lamp}", {"secret": "hush"})

    assert "Secret thing" in text_of(as_alice.get(activity_path(lamp)))
    assert without_token(as_bob.get(activity_path(lamp), {"show": "changes"}).content) == without_token(before)


def test_names_of_hidden_users_and_records_are_not_shown(lamp: str, alice: User, as_bob: Client):
    table("vault")
    field("vault", "name", is_display=True)
    rule("read", "vault", condition="name=open")
    field("device", "box", target="vault", label="Box")
    field("device", "boxes", "list", target="vault", label="Boxes")
    ids = [record("vault", name=name) for name in ("open", "hush")]
    api(alice).patch(f"device/{lamp}", {"box": ids[1], "boxes": ids})
    api(alice).post(f"device/{lamp}/comments", {"text": "a"})
    text = text_of(as_bob.get(activity_path(lamp)))
    assert "Box: empty → (not available)" in text and "Boxes: empty → open, (not available)" in text
    assert "alice" in text and "hush" not in text and ids[1] not in text

    Rule.objects.filter(table__name="user", column_name="login").delete()
    text = text_of(as_bob.get(activity_path(lamp)))
    assert "alice" not in text and "Changed the record" in text


def test_hidden_and_missing_records_get_the_same_404(device: Table, as_bob: Client):
    Rule.objects.filter(table=device, operation="read", column_name="").delete()
    rule("read", "device", condition="name=a")
    hidden_id = record("device", name="b")
    Comment(table_key=device.pk, record_id=hidden_id, text="secret").save()
    paths = {
        "get": ["activity/"],
        "post": ["comments/", "follow/", "attachments/", "comments/1/", "comments/1/delete/"],
    }
    for method, names in paths.items():
        for name in names:
            responses = [
                getattr(as_bob, method)(f"/tables/{path}/{name}", headers={"Accept": "text/html"})
                for path in (f"device/{hidden_id}", f"device/{'0' * 18}")
            ]
            assert [response.status_code for response in responses] == [404, 404], name
            assert without_token(responses[0].content) == without_token(responses[1].content)
    assert as_bob.get("/tables/nowhere/1/activity/").status_code == 404


def test_only_signed_in_people_see_it(lamp: str):
    response = Client().get(activity_path(lamp))
    assert response.status_code == 302 and response["Location"].startswith("/login/")
    assert Client().get(activity_path(lamp), headers={"HX-Request": "true"})["HX-Refresh"] == "true"


def test_number_of_statements_does_not_depend_on_the_number_of_entries(lamp: str, alice: User, as_bob: Client):
    counts = []
    for _ in range(3):
        for number in range(5):
            api(alice).patch(f"device/{lamp}", {"name": str(number), "owner": alice.pk if number % 2 else None})
            api(alice).post(f"device/{lamp}/comments", {"text": str(number)})
        as_bob.get(activity_path(lamp), headers={"HX-Request": "true", "HX-Target": "activity"})
        with captured_statements() as statements:
            as_bob.get(activity_path(lamp), headers={"HX-Request": "true", "HX-Target": "activity"})
        counts.append(len(statements))
    # Session, user and roles: 3. Opening the record, history, comments, attachments and following: 1 each.
    # Names: 1 for each table that the entries mention, here only users.
    assert set(counts) == {9}, "\n".join(statements)
