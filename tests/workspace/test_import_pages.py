"""The pages of imports: check a file, choose columns, import it, undo the import."""

import re
from html import unescape
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from accounts.models import User
from tableapi.imports import jobs
from tests.support.pages import without_token
from tests.support.users import signed_in_client
from tests.tableapi.designs import query_rows
from tests.tableapi.imports.files import run, workbook
from tests.tableapi.world import field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
NEW_PAGE = "/tables/part/import/"


@pytest.fixture(autouse=True)
def parts(db: Any) -> None:
    table("part")
    field("part", "name", is_display=True, mandatory=True)
    field("part", "code", is_unique=True, label="Part code")
    field("part", "quantity", "integer")


def upload(client: Client, content: str | bytes, name: str = "parts.csv", status: int = 302, **options: str) -> str:
    """Send the file; return the path of the import, or the text of the refused page."""
    data = content.encode() if isinstance(content, str) else content
    response = client.post(NEW_PAGE, {"file": SimpleUploadedFile(name, data), **options})
    assert response.status_code == status, response.content
    return response["Location"] if status == 302 else response.content.decode()


def text_of(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path, headers={"Accept": "text/html"})
    assert response.status_code == status
    return response.content.decode()


def names() -> list[str]:
    return [name for (name,) in query_rows("SELECT name FROM records.part ORDER BY name")]


def test_file_is_checked_then_imported_then_undone(as_bob: Client):
    open_table("part")
    path = upload(as_bob, "Name;Part code;Quantity\nBolt;b1;5\nNut;n1;7\n")
    text = text_of(as_bob, path)

    assert names() == [] and "nothing has been imported yet" in text and "<dt>To create</dt><dd>2</dd>" in text
    assert '<option value="code" selected>Part code</option>' in text
    assert as_bob.post(path, {"action": "import", "mode": "create", "on_error": "stop"}).status_code == 302
    assert names() == ["Bolt", "Nut"] and "Undo this import" in text_of(as_bob, path)
    as_bob.post(path, {"action": "undo"})
    assert names() == [] and "Import undone" in text_of(as_bob, path)


def test_errors_are_listed_by_line_with_labels(as_bob: Client):
    open_table("part")
    path = upload(as_bob, "name,quantity\nBolt,many\n,2\nNut,3\n", on_error="continue")
    text = text_of(as_bob, path)

    assert re.search(r"<tr><td>2</td><td>Quantity</td><td>many</td><td>[^<]+</td></tr>", text)
    assert re.search(r"<tr><td>3</td><td>Name</td><td></td><td>[^<]+</td></tr>", text)
    as_bob.post(path, {"action": "import", "mode": "create", "on_error": "continue"})
    assert names() == ["Nut"]


def test_columns_can_be_chosen(as_bob: Client):
    open_table("part")
    path = upload(as_bob, workbook(["Title", "Number"], ["Bolt", 5]), "parts.xlsx")
    assert "No column is named" in text_of(as_bob, path)

    chosen = {"column-0": "name", "column-1": ""}
    as_bob.post(path, {"action": "check", "mode": "create", "on_error": "stop", **chosen})
    assert "nothing has been imported yet" in text_of(as_bob, path)
    as_bob.post(path, {"action": "import", "mode": "create", "on_error": "stop", **chosen})
    assert query_rows("SELECT name, quantity FROM records.part") == [("Bolt", None)]


def test_records_are_updated_by_key(as_bob: Client):
    open_table("part")
    record("part", name="Bolt", code="b1", quantity=1)
    path = upload(as_bob, "code,name\nb1,Screw\nn1,Nut\n", mode="upsert", key="code", on_error="continue")
    as_bob.post(path, {"action": "import", "mode": "upsert", "key": "code", "on_error": "continue"})

    assert query_rows("SELECT name, quantity FROM records.part ORDER BY name") == [("Nut", None), ("Screw", 1)]


def test_large_file_shows_its_progress(as_bob: Client, monkeypatch: pytest.MonkeyPatch):
    open_table("part")
    monkeypatch.setattr(jobs, "MAX_BYTES_IN_REQUEST", 0)
    path = upload(as_bob, "name\nBolt\n")
    part = as_bob.get(path, headers={"HX-Request": "true"}).content.decode()

    assert 'hx-trigger="load delay:1s"' in part and part.startswith('<div id="import-state"')
    as_bob.post(path, {"action": "cancel"})
    assert "Canceled" in text_of(as_bob, path)


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [("name\nBolt\n", "parts.pdf", "Send a CSV file"), ("", "parts.csv", "empty"), ("name\n", "x.csv", "")],
)
def test_unusable_file_is_explained(as_bob: Client, content: str, name: str, message: str):
    open_table("part")
    if message:
        response = as_bob.post(NEW_PAGE, {"file": SimpleUploadedFile(name, content.encode())})
        assert 400 <= response.status_code < 500 and message in response.content.decode()
    else:
        upload(as_bob, content, name)
    assert names() == []


@pytest.mark.parametrize("form", [{}, {"mode": "x"}, {"mode": "update", "key": "quantity"}, {"delimiter": "ab"}])
def test_form_without_a_file_or_with_wrong_options_is_refused(as_bob: Client, form: dict[str, str]):
    open_table("part")
    response = as_bob.post(NEW_PAGE, form)
    assert response.status_code == 400 and 'role="alert"' in response.content.decode()


def test_imports_of_others_and_of_hidden_tables_do_not_exist(as_bob: Client, bob: User, alice: User):
    open_table("part")
    sys_id = run(alice, "part", "name\nBolt\n", dry_run=1)["sys_id"]
    missing = as_bob.get(f"{NEW_PAGE}{'0' * 18}/", headers={"Accept": "text/html"})
    hidden = as_bob.get(f"{NEW_PAGE}{sys_id}/", headers={"Accept": "text/html"})
    assert missing.status_code == hidden.status_code == 404
    assert without_token(missing.content) == without_token(hidden.content)
    for path in ("/tables/nothing/import/", "/tables/oidc_setting/import/"):
        assert as_bob.get(path).status_code == 404
        assert as_bob.post(path, {"mode": "create"}).status_code == 404


def test_hidden_columns_are_not_offered(as_bob: Client):
    rule("read", "part")
    rule("create", "part")
    rule("read", "part", column="code", roles=["auditor"])
    path = upload(as_bob, "name\nBolt\n")

    assert "Part code" not in text_of(as_bob, path) and "Part code" not in text_of(as_bob, NEW_PAGE)


def test_readers_cannot_import(as_bob: Client):
    rule("read", "part")
    assert "You are not allowed to create or update" in text_of(as_bob, NEW_PAGE)
    assert as_bob.post(NEW_PAGE, {"file": SimpleUploadedFile("a.csv", b"name\nx\n")}).status_code == 403


def test_visitors_and_forged_forms_are_refused(bob: User, client: Client):
    open_table("part")
    assert client.post(NEW_PAGE).status_code == 302
    strict_client = signed_in_client(bob, enforce_csrf_checks=True)
    assert strict_client.post(NEW_PAGE, {"file": SimpleUploadedFile("a.csv", b"name\nx\n")}).status_code == 403
    assert names() == []


def test_only_administrators_can_keep_ids(as_bob: Client, as_alice: Client):
    open_table("part")
    assert "Keep IDs" not in text_of(as_bob, NEW_PAGE) and "Keep IDs" in text_of(as_alice, NEW_PAGE)
    text = upload(as_bob, "sys_id,name\nold1,Bolt\n", status=403, sysparm_import="1")
    assert "Only administrators can import records." in text
    path = upload(as_alice, "sys_id,name\nold1,Bolt\n", sysparm_import="1")
    as_alice.post(path, {"action": "import", "mode": "create", "on_error": "stop", "sysparm_import": "1"})
    assert query_rows("SELECT sys_id FROM records.part") == [("old1",)]


@pytest.mark.django_db(transaction=True)  # records get the time at which their transaction began
def test_link_leads_to_the_imported_records(as_bob: Client):
    open_table("part")
    record("part", name="Older")
    path = upload(as_bob, "name\nBolt\n")
    as_bob.post(path, {"action": "import", "mode": "create", "on_error": "stop"})
    link = re.search(r'href="(/tables/part/\?sysparm_query=[^"]+)">Show the records', text_of(as_bob, path))

    assert link is not None
    listed = text_of(as_bob, unescape(link[1]))
    assert "Bolt" in listed and "Older" not in listed
