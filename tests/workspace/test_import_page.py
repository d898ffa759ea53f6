"""The pages of imports: a file is checked, then imported, and the import can be undone."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tableapi.models import Import
from tests.tableapi.designs import query_rows
from tests.tableapi.world import field, open_table, table

pytestmark = pytest.mark.django_db

URL = "/tables/device/import/"


@pytest.fixture(autouse=True)
def devices(db: Any) -> None:
    table("device")
    field("device", "name", is_display=True)
    field("device", "size", "integer")
    open_table("device")


def upload(client: Client, content: bytes, **values: str) -> Any:
    return client.post(URL, {"file": SimpleUploadedFile("devices.csv", content), **values})


def test_file_is_checked_then_imported_then_undone(as_bob: Client):
    assert 'name="file"' in as_bob.get(URL).content.decode()
    response = upload(as_bob, b"Title\tSize\nLamp\t3\n", mode="create", on_error="stop")
    page = response["Location"]
    text = as_bob.get(page).content.decode()
    assert "The file cannot be imported like this" in text and "No column is named" in text
    as_bob.post(page, {"action": "check", "delimiter": "tab", "column-0": "name", "column-1": "size"})
    assert "nothing has been imported yet" in as_bob.get(page).content.decode()
    assert query_rows("SELECT count(*) FROM records.device") == [(0,)]
    as_bob.post(page, {"action": "import", "delimiter": "tab", "column-0": "name", "column-1": "size"})
    assert query_rows("SELECT name, size FROM records.device") == [("Lamp", 3)]
    as_bob.post(page, {"action": "undo"})
    assert query_rows("SELECT count(*) FROM records.device") == [(0,)]
    assert "Import undone" in as_bob.get(page).content.decode()
    assert "devices.csv" in as_bob.get(URL).content.decode()


@pytest.mark.parametrize(
    ("values", "message"),
    [({"mode": "upsert", "key": "size"}, "is not a unique column"), ({"encoding": "zip"}, "encoding must be a text")],
)
def test_invalid_options_are_shown_on_the_page(as_bob: Client, values: dict[str, str], message: str):
    response = upload(as_bob, b"name\nLamp\n", **values)
    assert response.status_code == 400 and message in response.content.decode()
    assert not Import.objects.exists()


def test_missing_file_is_shown_on_the_page(as_bob: Client):
    assert "Choose a file." in as_bob.post(URL).content.decode()
