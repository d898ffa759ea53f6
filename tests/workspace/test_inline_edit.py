"""Editing a cell of a list in place."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.tableapi.world import api, data_of, field, grant, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def lamp(db: Any) -> str:
    table("maker")
    field("maker", "name", is_display=True)
    rule("read", "maker")
    table("device")
    field("device", "name", is_display=True)
    field("device", "maker", target="maker")
    field("device", "size", "integer")
    field("device", "story", "wysiwyg")
    field("device", "level")
    for operation in ("read", "write"):
        rule(operation, "device")
        rule(operation, "device", "level", roles=["auditor"])
    return record("device", name="Lamp", size=3, maker=record("maker", name="Lux"))


def cell_url(sys_id: str, column: str = "name") -> str:
    return f"/tables/device/{sys_id}/cell/{column}/"


def version_of(client: Client, url: str) -> str:
    text = client.get(url).content.decode()
    return text.partition('name="cell-version" value="')[2].partition('"')[0]


def test_cell_becomes_a_control_with_its_value(as_bob: Client, lamp: str):
    text = as_bob.get(cell_url(lamp)).content.decode()
    assert 'name="name" value="Lamp"' in text and 'aria-label="Name"' in text and "<html" not in text
    assert 'data-picker="/tables/maker/options/"' in as_bob.get(cell_url(lamp, "maker")).content.decode()


def test_saved_value_is_returned_as_cell(as_bob: Client, bob: User, lamp: str):
    url = cell_url(lamp)
    response = as_bob.post(
        f"{url}?link=1&list=sysparm_query%3Dsize%253D3", {"name": "Lantern", "cell-version": version_of(as_bob, url)}
    )
    assert response.status_code == 200 and response["HX-Reswap"] == "outerHTML"
    link = f"/tables/device/{lamp}/?list=table%3Ddevice%26sysparm_query%3Dsize%253D3"
    assert response.content.decode() == f'<td><a href="{link}">Lantern</a></td>'
    assert data_of(api(bob).get(f"device/{lamp}"))[0]["name"] == "Lantern"
    assert as_bob.post(cell_url(lamp, "size"), {"size": "4"}).content.decode() == '<td class="number">4</td>'
    assert as_bob.post(cell_url(lamp, "size"), {"size": ""}).content.decode() == '<td class="number"></td>'


def test_decimals_keep_their_digits(as_bob: Client, lamp: str):
    field("device", "price", "decimal")
    cell = as_bob.post(cell_url(lamp, "price"), {"price": "1299.90"}).content.decode()
    assert cell == '<td class="number">1299.90</td>'
    assert 'value="1299.90"' in as_bob.get(cell_url(lamp, "price")).content.decode()


def test_invalid_value_is_explained_beside_the_control(as_bob: Client, lamp: str):
    response = as_bob.post(cell_url(lamp, "size"), {"size": "many"})
    text = response.content.decode()
    assert response.status_code == 422 and 'role="alert"' in text and 'value="many"' in text


def test_conflict_shows_both_values(as_bob: Client, bob: User, lamp: str):
    url = cell_url(lamp)
    old_version = version_of(as_bob, url)
    assert api(bob).patch(f"device/{lamp}", {"name": "Candle"}).status_code == 200
    response = as_bob.post(url, {"name": "Lantern", "cell-version": old_version})
    text = response.content.decode()
    assert response.status_code == 412 and "<strong>Candle</strong>" in text and 'value="Lantern"' in text
    new_version = text.partition('name="cell-version" value="')[2].partition('"')[0]
    assert as_bob.post(url, {"name": "Lantern", "cell-version": new_version}).status_code == 200


def test_rules_of_the_record_decide(as_bob: Client, bob: User, lamp: str):
    rule("write", "device", "name", condition="size=4")
    response = as_bob.post(cell_url(lamp), {"name": "Lantern"})
    assert response.status_code == 403 and 'role="alert"' in response.content.decode()
    assert data_of(api(bob).get(f"device/{lamp}"))[0]["name"] == "Lamp"


@pytest.mark.parametrize("column", ["level", "missing", "sys_updated_at", "story", "sys_id"])
def test_column_that_cannot_be_written_has_no_control(as_bob: Client, lamp: str, column: str):
    reference = as_bob.get(cell_url(lamp, "missing"))
    for response in (as_bob.get(cell_url(lamp, column)), as_bob.post(cell_url(lamp, column), {column: "x"})):
        assert response.status_code == 404 and response.content == reference.content


def test_hidden_and_missing_record_are_the_same(as_bob: Client, lamp: str):
    rule("read", "device", condition="nameISEMPTY")
    from tableapi.models import Rule

    Rule.objects.filter(operation="read", condition="", column_name="").delete()
    hidden, missing = as_bob.get(cell_url(lamp)), as_bob.get(cell_url("179000000000000000"))
    assert hidden.status_code == missing.status_code == 404 and hidden.content == missing.content
    assert as_bob.post(cell_url(lamp), {"name": "x"}).content == missing.content


def test_header_marks_the_columns_that_the_caller_may_write(as_bob: Client, bob: User, lamp: str):
    text = as_bob.get("/tables/device/?columns=name,story,sys_updated_at").content.decode()
    editable = [
        part.partition('"')[0] for part in text.split('data-path="')[1:] if "data-editable" in part.partition(">")[0]
    ]
    assert editable == ["name"]
    grant(bob, "auditor")
    assert 'data-path="level" data-editable' in as_bob.get("/tables/device/?columns=level").content.decode()
