"""The page of design files: a file is planned, then exactly that plan is applied. Only for administrators."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tableapi.models import Table
from tests.tableapi.world import table

pytestmark = pytest.mark.django_db

URL = "/design-files/"
TEXT = """format: 1\r
tables:\r
- name: device\r
  label: <b>Device</b>\r
  rules:\r
  - {operation: read, roles: []}\r
"""


def digest_of(page: str) -> str:
    return page.partition('name="digest" value="')[2].partition('"')[0]


def test_file_is_planned_then_applied(as_alice: Client):
    assert "Show the plan" in as_alice.get(URL).content.decode()
    page = as_alice.post(URL, {"file": SimpleUploadedFile("design.yaml", TEXT.encode())}).content.decode()
    assert "create table device" in page and "&lt;b&gt;Device" in page and "<b>Device" not in page
    assert page.index("create rule read device") < page.index("create table device") and "More rights." in page
    assert not Table.objects.filter(name="device").exists()
    page = as_alice.post(URL, {"text": TEXT, "digest": digest_of(page)}).content.decode()
    assert "Applied: 2 steps" in page and Table.objects.filter(name="device").exists()
    assert "name: device" in as_alice.get(f"{URL}export/").content.decode()


def test_plan_that_has_changed_is_not_applied(as_alice: Client):
    page = as_alice.post(URL, {"text": TEXT}).content.decode()
    table("device")
    response = as_alice.post(URL, {"text": TEXT, "digest": digest_of(page)})
    assert response.status_code == 409 and "has changed since this plan" in response.content.decode()
    assert Table.objects.get(name="device").label == "Device"


def test_errors_keep_the_text(as_alice: Client):
    response = as_alice.post(URL, {"text": "format: 1\ntables: [{name: '-', label: A}]", "prune": "1"})
    page = response.content.decode()
    assert response.status_code == 422 and "Line 2, table -" in page
    assert "{name: &#x27;-&#x27;, label: A}" in page and " checked" in page


def test_only_administrators_see_the_page(as_bob: Client):
    responses: list[Any] = [as_bob.get(URL), as_bob.post(URL, {"text": TEXT}), as_bob.get(f"{URL}export/")]
    assert [response.status_code for response in responses] == [403] * 3
    assert not Table.objects.filter(name="device").exists()


def test_list_of_designs_links_to_the_page(as_alice: Client):
    assert f'href="{URL}"' in as_alice.get("/design/").content.decode()
