"""`POST /rest/v1/batch`."""

from typing import Any

import pytest

from accounts.models import User
from system.errors import QueryTooSlow
from tableapi.http import batch_views
from tableapi.models import Rule, Table
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, errors_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
BATCH_URL = "/rest/v1/batch"
PART_URL = "/rest/v1/table/part"


@pytest.fixture
def part(db: Any) -> Table:
    new_table = table("part")
    field("part", "name")
    field("part", "quantity", "integer")
    field("part", "code", is_unique=True)
    open_table(new_table)
    return new_table


def send_batch(user: User, *requests: Any, **options: Any) -> list[dict[str, Any]]:
    return list(data_of(api(user).post(BATCH_URL, {"requests": list(requests), **options})))


def item(method: str = "GET", url: str = PART_URL, **options: Any) -> dict[str, Any]:
    return {"id": options.pop("id", "x"), "method": method, "url": url, **options}


def statuses(entries: list[dict[str, Any]]) -> list[int]:
    return [entry["status"] for entry in entries]


def test_responses_are_in_order_and_equal_those_of_single_requests(part: Table, bob: User):
    sys_id = record("part", name="bolt")
    urls = [f"{PART_URL}/{sys_id}", f"{PART_URL}?sysparm_query=name%3Dbolt&sysparm_count=exact", f"{PART_URL}/0",
            "/rest/v1/stats/part?sysparm_count=1", f"{PART_URL}?sysparm_query=none=1"]  # fmt: skip
    entries = send_batch(bob, *(item(url=url, id=number) for number, url in enumerate(urls)))
    assert [entry["id"] for entry in entries] == [0, 1, 2, 3, 4]
    for url, entry in zip(urls, entries, strict=True):
        single_response = api(bob).get(url)
        assert (entry["status"], entry["body"]) == (single_response.status_code, single_response.json())
        assert all(single_response[name] == value for name, value in entry["headers"].items())
    assert entries[0]["headers"].keys() == {"ETag"} and entries[1]["headers"]["X-Total-Count"] == "1"


def test_consecutive_reads_of_records_are_one_statement(part: Table, bob: User):
    ids = [record("part", name=f"part {number}") for number in range(batch_views.MAX_READ_RUN + 1)]
    urls = [f"{PART_URL}/{sys_id}" for sys_id in [*ids, "0", ids[0]]]
    with captured_statements() as statements:
        entries = send_batch(bob, *(item(url=url) for url in urls), item(url=f"{urls[0]}?sysparm_fields=name"))
    assert statuses(entries) == [200] * len(ids) + [404, 200, 200]
    assert [entry["body"]["data"][0]["name"] for entry in entries[: len(ids)]] == [f"part {n}" for n in range(len(ids))]
    assert entries[-2] == entries[0] and entries[-1]["body"]["data"] == [{"name": "part 0"}]
    assert sum("records." in statement for statement in statements) == 3


def test_reads_see_the_writes_before_them(part: Table, bob: User):
    url = f"{PART_URL}/{record('part', name='a')}"
    entries = send_batch(bob, item(url=url), item("PATCH", url, body={"name": "b"}), item(url=url), item("DELETE", url),
                         item(url=url))  # fmt: skip
    assert statuses(entries) == [200, 200, 200, 200, 404]
    assert [entry["body"]["data"][0]["name"] for entry in entries[:3]] == ["a", "b", "b"]


def test_unreadable_records_between_readable_ones_are_not_found(part: Table, bob: User, carl: User):
    ids = [record("part", name=name) for name in ("open", "secret", "open")]
    Rule.objects.filter(table=part).delete()
    rule("read", "part", condition="name=open")
    rule("read", "part", "*")
    entries = send_batch(carl, *(item(url=f"{PART_URL}/{sys_id}") for sys_id in ids))
    assert statuses(entries) == [200, 404, 200]
    (single_entry,) = send_batch(carl, item(url=f"{PART_URL}/{ids[1]}"))
    assert entries[1] == single_entry


def test_batch_can_create_change_and_delete_records(part: Table, bob: User):
    entries = send_batch(
        bob,
        item("POST", body={"name": "a"}),
        item("POST", "/rest/v1/upsert/part?sysparm_key=code", body={"code": "1", "name": "b"}),
        item("POST", "/rest/v1/bulk/part", body=[{"name": "c"}, {"name": "d"}]),
        item("POST"),
        item("POST", body=["x"]),
    )
    assert statuses(entries) == [201, 201, 201, 400, 400]
    assert query_rows("SELECT name, sys_created_by FROM records.part ORDER BY name") == [(n, bob.pk) for n in "abcd"]
    sys_id = entries[0]["body"]["data"][0]["sys_id"]
    etag = entries[0]["headers"]["ETag"]
    entries = send_batch(
        bob,
        item("PATCH", f"{PART_URL}/{sys_id}", headers={"If-Match": '"7-x"'}, body={"name": "z"}),
        item("PATCH", f"{PART_URL}/{sys_id}", headers={"if-match": etag}, body={"name": "A"}),
        item("GET", f"{PART_URL}/{sys_id}", headers={"If-None-Match": "*"}),
        item("DELETE", f"{PART_URL}/{sys_id}"),
    )
    assert statuses(entries) == [412, 200, 304, 200] and entries[2]["body"] is None
    (entry,) = send_batch(bob, item("HEAD", f"{PART_URL}?sysparm_count=exact"))
    assert (entry["status"], entry["body"], entry["headers"]["X-Total-Count"]) == (200, None, "3")


def test_atomic_batch_writes_all_or_nothing(part: Table, bob: User):
    record("part", code="taken")
    items = [item("POST", body={"name": "a"}, id=1), item("POST", body={"code": "taken"}, id=2), item("HEAD", id=3)]
    entries = send_batch(bob, *items, atomic=True)
    assert [(entry["id"], entry["status"]) for entry in entries] == [(1, 424), (2, 409), (3, 424)]
    assert {entries[number]["body"]["errors"][0]["code"] for number in (0, 2)} == {"not_done"}
    assert query_rows("SELECT count(*) FROM records.part") == [(1,)]
    assert statuses(send_batch(bob, items[0], item(), atomic=True)) == [201, 200]
    assert statuses(send_batch(bob, *items)) == [201, 409, 200]
    assert query_rows("SELECT count(*) FROM records.part") == [(3,)]


def test_failed_read_rolls_back_an_atomic_batch(part: Table, bob: User):
    entries = send_batch(bob, item("POST", body={"name": "a"}), item(url="/rest/v1/table/none"), atomic=True)
    assert statuses(entries) == [424, 404]
    assert query_rows("SELECT count(*) FROM records.part") == [(0,)]


@pytest.mark.parametrize(
    "url",
    [BATCH_URL, "/rest/v1/auth/login", "/api/me", "/get_relevant_documents", "https://other.example/rest/v1/table/part",
     "//other.example/rest/v1/table/part", "rest/v1/table/part", "", None, "/rest/v1/table/../../api/me",
     "/rest/v1/table/pä", "/rest/v1/table/part\n", "/rest/v1/table/part?sysparm_import=1"],
)  # fmt: skip
def test_unsupported_urls_are_refused_and_the_batch_continues(part: Table, bob: User, url: Any):
    entries = send_batch(bob, item(url=url), item())
    assert entries[0]["status"] in (400, 404) and entries[0]["body"]["status"] == "ERROR"
    assert entries[1]["status"] == 200
    assert statuses(send_batch(bob, item(), item(url=url), atomic=True))[0] == 424


@pytest.mark.parametrize(
    "malformed_item",
    [
        "x",
        {},
        {"method": "GET"},
        item("TRACE"),
        item("get"),
        item(more=1),
        item(headers=["x"]),
        item(headers={"Accept": 1}),
        item(headers=[]),
        {"method": ["GET"], "url": PART_URL},
    ],
)
def test_malformed_requests_are_refused(part: Table, bob: User, malformed_item: Any):
    assert statuses(send_batch(bob, malformed_item, item())) == [400, 200]


def test_credentials_and_idempotency_key_of_an_item_are_ignored(part: Table, bob: User, alice: User):
    rule("read", "part", "quantity", roles=["itil"])
    record("part", name="bolt", quantity=3)
    headers = {
        "Authorization": api(alice).headers["Authorization"],
        "Idempotency-Key": "k",
        "X-Forwarded-For": "1.2.3.4",
    }
    (entry,) = send_batch(bob, item(headers=headers))
    assert "quantity" not in entry["body"]["data"][0]
    for _ in range(2):
        send_batch(bob, item("POST", headers={"Idempotency-Key": "k"}, body={"name": "a"}))
    assert query_rows("SELECT count(*) FROM records.part") == [(3,)]
    assert statuses(send_batch(bob, item("POST", headers={"Content-Type": "text/plain"}, body={"name": "a"}))) == [415]


@pytest.mark.parametrize(
    "body",
    [
        "",
        [],
        {},
        {"requests": {}},
        {"requests": [], "atomic": "yes"},
        {"requests": [], "more": 1},
        {"requests": [item()] * 101},
    ],
)
def test_invalid_batches_are_refused(part: Table, bob: User, body: Any):
    response = api(bob).post(BATCH_URL, body)
    assert response.status_code == 400 and errors_of(response)


def test_credentials_are_required(part: Table):
    assert api(None).post(BATCH_URL, {"requests": [item()]}).status_code == 401


def test_total_size_of_responses_is_limited(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    record("part", name="x" * 2_000)
    monkeypatch.setattr(batch_views, "MAX_BATCH_RESPONSE_BYTES", 1_000)
    assert statuses(send_batch(bob, item(), item())) == [200, 413]


def test_request_with_too_many_parameters_fails_alone(part: Table, bob: User):
    assert statuses(send_batch(bob, item(url=f"{PART_URL}?{'&'.join(['a=1'] * 2_500)}"), item())) == [413, 200]


def test_batch_has_a_time_limit(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batch_views, "MAX_BATCH_S", -1.0)
    assert statuses(send_batch(bob, item(), item(), atomic=False)) == [413, 413]


def test_slow_statement_of_an_atomic_batch_is_counted(part: Table, bob: User, monkeypatch: pytest.MonkeyPatch):
    def raise_too_slow(*_: Any) -> Any:
        raise QueryTooSlow

    monkeypatch.setattr("tableapi.http.table_views.pipeline.read_list", raise_too_slow)
    assert statuses(send_batch(bob, item(), item(), atomic=True)) == [422, 424]
    bob.refresh_from_db()
    assert bob.slow_statements == 1


def test_each_request_is_logged(part: Table, bob: User, capfd: pytest.CaptureFixture[str]):
    send_batch(bob, item(), item("POST", body={"name": "a"}))
    lines = [line for line in capfd.readouterr().err.splitlines() if "request_finished" in line]
    assert [line.partition("request='")[2].partition("'")[0] for line in lines] == [
        "GET /rest/v1/table/part", "POST /rest/v1/table/part", "POST /rest/v1/batch"
    ]  # fmt: skip
    assert len({line.partition("request_id=")[2].partition(" ")[0] for line in lines}) == 1


def test_table_can_be_named_attachments(bob: User, alice: User):
    open_table(table("attachments"))
    sys_id = record("attachments")
    urls = ["/rest/v1/table/attachments", f"/rest/v1/table/attachments/{sys_id}",
            f"/rest/v1/table/attachments/{sys_id}/attachments"]  # fmt: skip
    entries = data_of(api(bob).post("/rest/v1/batch", {"requests": [{"method": "GET", "url": url} for url in urls]}))
    assert [entry["status"] for entry in entries] == [200, 200, 200]


@pytest.mark.parametrize("suffix", ["", "/"])
def test_attachment_content_and_uploads_are_refused(part: Table, bob: User, suffix: str):
    files_url = f"{PART_URL}/{record('part')}/attachments"
    entries = send_batch(bob, item(url=f"{files_url}/0/content{suffix}"), item("POST", f"{files_url}{suffix}", body={}))
    assert statuses(entries) == [400, 400]
