"""The administration's page of a table's records shows what the Table API returns."""

from typing import Any

import pytest
from django.test import Client

from tableapi.models import Table
from tests.tableapi.catalogue_pages import page_text
from tests.tableapi.world import field, open_table, record, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def records_path(as_alice: Client) -> str:
    table("maker")
    field("maker", "name", is_display=True)
    table("device")
    field("device", "name")
    field("device", "secret_code", "secret")
    field("device", "state", choices={"1": "New"})
    field("device", "maker", target="maker")
    field("device", "others", "list", target="maker")
    field("device", "about", "json")
    open_table("device")
    return f"/admin/tableapi/table/{Table.objects.get(name='device').pk}/records/"


def test_records_are_listed_with_display_values(as_alice: Client, records_path: str):
    record("device", name="<b>Lamp</b>", state="1", maker=record("maker", name="Lux"), secret_code="hush")
    response = as_alice.get(records_path)
    text = response.content.decode()

    assert (
        "&lt;b&gt;Lamp&lt;/b&gt;" in text
        and '<td data-column="state">New</td><td data-column="maker">Lux</td>' in text
        and "hush" not in text
    )
    assert "Not shown, because the values are secret: secret_code." in text and 'data-column="secret_code"' not in text
    assert records_path in as_alice.get(records_path.removesuffix("records/") + "change/").content.decode()


def test_formatted_text_is_listed_as_plain_text(as_alice: Client, records_path: str):
    field("device", "story", "wysiwyg")
    record("device", story="<p>It <b>hums</b></p>")
    assert '<td data-column="story">It hums</td>' in as_alice.get(records_path).content.decode()


def test_record_page_shows_all_columns(as_alice: Client, records_path: str):
    nameless_maker = record("maker")
    lux, json_value = record("maker", name="Lux"), {"länge": 3}
    lamp = record(
        "device", name="Lamp", state="1", maker=nameless_maker, others=[lux, nameless_maker], about=json_value
    )
    text = page_text(as_alice.get(records_path, {"record": lamp}))
    assert (
        f"sys_id {lamp}" in text
        and "state New" in text
        and f"maker {nameless_maker} others Lux, {nameless_maker} about" in text
    )
    assert "{&quot;länge&quot;: 3}" in text
    assert as_alice.get(records_path, {"record": "nothing"}).status_code == 404


def test_query_filters_and_paginates(as_alice: Client, records_path: str):
    for number in range(51):
        record("device", name=f"d{number:02}")
    first_page = as_alice.get(records_path, {"query": "name!=d00^ORDERBYDESCname"}).content.decode()
    assert "d50" in first_page and ">d00</td>" not in first_page and 'rel="next"' not in first_page
    unfiltered_page = as_alice.get(records_path).content.decode()
    assert "d00" in unfiltered_page and "d50" not in unfiltered_page and "page=2" in unfiltered_page
    assert "d50" in as_alice.get(records_path, {"page": "2"}).content.decode()


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"query": "nothing=1"}, "There is no column named &quot;nothing&quot;."),
        ({"query": "name="}, "No records match the query."),
        ({"page": "9"}, "There are no records on this page. Go to the first page"),
        ({"query": "name\x00"}, "contains a character that cannot be stored"),
        ({"query": "name=a", "page": "x"}, "sysparm_page must be a whole number from 1 to 1,000,000."),
    ],
)
def test_empty_result_is_explained(as_alice: Client, records_path: str, params: dict[str, str], sentence: str):
    record("device", name="Lamp")
    assert sentence in page_text(as_alice.get(records_path, params))


def test_record_with_a_hidden_id_has_no_link(as_alice: Client, records_path: str):
    record("device", name="Lamp")
    rule("read", "device", column="sys_id", roles=["monitoring"], admin_overrides=False)
    response = as_alice.get(records_path)
    assert "Lamp" in page_text(response) and "?record=" not in response.content.decode()


def test_empty_table_explains_how_to_create_records(as_alice: Client, records_path: str):
    assert "There are no records that you can read." in page_text(as_alice.get(records_path))


def test_product_tables_link_to_their_own_pages(as_alice: Client, records_path: str):
    user_table = Table.objects.get(name="user")
    assert as_alice.get(f"/admin/tableapi/table/{user_table.pk}/records/").status_code == 404
    assert "Show records" not in page_text(as_alice.get(f"/admin/tableapi/table/{user_table.pk}/change/"))


def test_page_requires_permission_to_view_tables(client: Client, bob: Any, records_path: str):
    client.force_login(bob)
    assert client.get(records_path)["Location"].startswith("/admin/login/")
