"""The list page: what it shows, its links, search, sorting, grouping, counting, paging and export."""

import codecs
import json
import re
from html import escape, unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from django.test import Client

from accounts.models import User
from tests.support.users import signed_in_client
from tests.tableapi.database_statements import captured_statements
from tests.tableapi.world import api, field, grant, open_table, record, rule, table, view
from workspace.forms.display import PATH_SEPARATOR

pytestmark = pytest.mark.django_db

HTMX = {"HX-Request": "true"}


@pytest.fixture
def devices(db: Any) -> dict[str, str]:
    """Two makers and three devices; everybody may do everything, but only auditors see the price."""
    table("maker")
    field("maker", "name", is_display=True)
    field("maker", "city")
    table("device")
    field("device", "name", label="Name of the device", is_display=True, is_indexed=True)
    field("device", "maker", target="maker")
    field("device", "state", choices={"1": "New", "2": "Old"})
    field("device", "price", "decimal")
    field("device", "bought", "datetime")
    field("device", "story", "wysiwyg")
    open_table("maker")
    open_table("device")
    rule("read", "device", "price", roles=["auditor"])
    lux = record("maker", name="Lux", city="Linz")
    return {
        "lux": lux,
        "lamp": record(
            "device", name="<b>Lamp</b>", maker=lux, state="1", price=5, bought="2024-05-09 23:30:00",
            story="<p>It <b>hums</b>\n loudly</p>",
        ),
        "desk": record("device", name="Desk", state="2", price=80),
        "chair": record("device", name="Chair", maker=lux, state="1", price=20),
    }  # fmt: skip


def page_of(client: Client, path: str = "/tables/device/", status: int = 200, **parameters: str) -> str:
    response = client.get(path, parameters, headers={"Accept": "text/html"})
    assert response.status_code == status, response.content
    # Without the tokens, which differ in each response.
    return re.sub(r'(csrf-token" content|csrfmiddlewaretoken" value)="\w+"', r"\1", response.content.decode())


def rows_of(text: str) -> list[str]:
    return [row.partition("</tr>")[0] for row in text.split("<tr data-id=")[1:]]


def hrefs_of(text: str) -> list[str]:
    return [unescape(part.partition('"')[0]) for part in text.split('href="')[1:]]


def test_cells_are_display_texts_under_labels(as_bob: Client, bob: User, devices: dict[str, str]):
    bob.time_zone = "Europe/Vienna"
    bob.save()
    text = page_of(as_bob, columns="name,maker,maker.city,state,bought,story")
    assert "Name of the device" in text and f"Maker{PATH_SEPARATOR}City" in text
    row = next(row for row in rows_of(text) if devices["lamp"] in row)
    assert "&lt;b&gt;Lamp&lt;/b&gt;" in row and "<td>Linz</td><td>New</td><td>10 May 2024, 01:30</td>" in row
    assert "<td>It hums loudly</td>" in row
    assert f'<a href="/tables/maker/{devices["lux"]}/">Lux</a>' in row


def test_decimals_keep_their_digits(as_alice: Client, devices: dict[str, str]):
    record("device", name="Bed", price="1299.90")
    assert '<td class="number">1299.90</td>' in page_of(as_alice, columns="name,price")
    assert "1299.90</a>" in page_of(as_alice, group="price")


def test_link_to_a_record_contains_the_parameters_of_the_list(as_bob: Client, devices: dict[str, str]):
    parameters: Any = {"sysparm_query": "state=1^ORDERBYname", "columns": "name,state"}
    text = page_of(as_bob, **parameters)
    href = next(href for href in hrefs_of(text) if devices["lamp"] in href)
    assert href.startswith(f"/tables/device/{devices['lamp']}/?")
    assert parse_qs(parse_qs(urlsplit(href).query)["list"][0]) == {
        name: [value] for name, value in {"table": "device", **parameters}.items()
    }


def test_records_of_a_child_table_link_with_its_name_if_it_is_visible(as_bob: Client, bob: User):
    table("device")
    field("device", "name", is_display=True)
    table("laptop", parent="device")
    laptop = record("laptop", name="Thin")
    rule("read", "device")
    assert f'href="/tables/laptop/{laptop}/?' in page_of(as_bob, columns="name")
    rule("read", "laptop", roles=["auditor"])
    assert laptop not in page_of(as_bob, columns="name")


def test_pages_of_a_hidden_and_a_missing_table_are_the_same(as_bob: Client):
    table("hidden")
    rule("read", "hidden", roles=["auditor"])
    paths = ["", "columns/", "saved/", "export/?format=csv", "179000000000000000/cell/name/"]
    for path in paths:
        hidden, missing = (as_bob.get(f"/tables/{name}/{path}") for name in ("hidden", "missing"))
        assert hidden.status_code == missing.status_code == 404 and hidden.content == missing.content
        assert as_bob.post(f"/tables/hidden/{path}").status_code in (404, 405)


def test_hidden_column_is_not_shown_sorted_grouped_or_offered(as_bob: Client, devices: dict[str, str]):
    text = page_of(as_bob)
    assert "Price" not in text and ">80<" not in text
    assert "Price" not in page_of(as_bob, columns="name,price")
    assert "Price" not in page_of(as_bob, "/tables/device/columns/")
    for parameters in ({"sysparm_query": "ORDERBYprice"}, {"sysparm_query": "price>10"}, {"group": "price"}):
        hidden = page_of(as_bob, status=400, **parameters)
        missing = page_of(
            as_bob, status=400, **{name: value.replace("price", "prize") for name, value in parameters.items()}
        )
        assert hidden.replace("price", "prize") == missing


def test_auditor_sees_the_column(devices: dict[str, str], bob: User):
    grant(bob, "auditor")
    text = page_of(signed_in_client(bob), columns="name,price", sysparm_query="price>10^ORDERBYprice")
    assert "Price" in text and [">20<" in row or ">80<" in row for row in rows_of(text)] == [True, True]


def test_hidden_record_is_not_listed_counted_or_grouped(as_bob: Client, devices: dict[str, str]):
    table("case")
    field("case", "name", is_display=True)
    rule("read", "case", condition="nameSTARTSWITHopen")
    for name in ("open 1", "open 2", "hush"):
        record("case", name=name)
    assert "hush" not in page_of(as_bob, "/tables/case/") and len(rows_of(page_of(as_bob, "/tables/case/"))) == 2
    response = as_bob.get("/tables/case/?count=1", headers=HTMX)
    assert response.content.decode().strip() == "2 records"
    assert "hush" not in page_of(as_bob, "/tables/case/", group="name")


def test_header_sorts_ascending_then_descending_then_not(as_bob: Client, devices: dict[str, str]):
    def sort_query(query: str) -> str | None:
        text = page_of(as_bob, sysparm_query=query, columns="name,story")
        header = text.partition('<th scope="col" data-path="name"')[2].partition("</th>")[0]
        (href,) = hrefs_of(header)
        return parse_qs(urlsplit(href).query).get("sysparm_query", [""])[0]

    assert sort_query("state=1") == "state=1^ORDERBYname"
    assert sort_query("state=1^ORDERBYname") == "state=1^ORDERBYDESCname"
    assert sort_query("state=1^ORDERBYDESCname") == "state=1"
    assert 'aria-sort="descending"' in page_of(as_bob, sysparm_query="ORDERBYDESCname")


def test_column_that_cannot_be_sorted_has_no_link(as_bob: Client, devices: dict[str, str]):
    field("device", "about", "json")
    text = page_of(as_bob, columns="name,about")
    assert not hrefs_of(text.partition('data-path="about"')[2].partition("</th>")[0])


def test_search_is_a_condition_of_the_query(as_bob: Client, devices: dict[str, str]):
    def searched(words: str, **parameters: str) -> str:
        response = as_bob.get("/tables/device/", {"q": words, **parameters})
        assert response.status_code == 302
        return parse_qs(urlsplit(response["Location"]).query).get("sysparm_query", [""])[0]

    assert searched("lamp") == "sys_idARElamp"
    assert (
        searched("x ^ y", sysparm_query="sys_idARElamp^state=1^ORDERBYname") == "state=1^sys_idARE{x ^ y}^ORDERBYname"
    )
    assert searched("", sysparm_query="sys_idARElamp") == "" and searched("...") == ""
    assert searched("a", sysparm_query="state=1^NQstate=2") == "(state=1^NQstate=2)^sys_idAREa"
    text = page_of(as_bob, sysparm_query="sys_idAREchair")
    assert 'name="q" value="chair"' in text and len(rows_of(text)) == 1


def test_search_of_a_table_without_searchable_text_uses_the_display_column(as_bob: Client):
    table("plain")
    field("plain", "name")
    open_table("plain")
    rule("read", "plain", "sys_id", roles=["auditor"])
    response = as_bob.get("/tables/plain/", {"q": "a"})
    assert response["Location"].endswith("?" + urlencode({"sysparm_query": "nameLIKEa"}))


def test_list_without_a_search_says_why(as_bob: Client, as_alice: Client, devices: dict[str, str]):
    table("plain")
    field("plain", "colour")
    open_table("plain")
    reason, link = "no text column that you can read is indexed", "/design/plain/#section-columns"
    assert reason in page_of(as_bob, "/tables/plain/") and link not in page_of(as_bob, "/tables/plain/")
    assert reason in page_of(as_alice, "/tables/plain/") and link in page_of(as_alice, "/tables/plain/")
    for path in ("/tables/device/", "/tables/sys_user_group/"):
        assert "Index a column" not in page_of(as_alice, path)
    assert reason not in page_of(as_bob)


def test_pages_of_a_table_lead_back_to_those_above(as_bob: Client, devices: dict[str, str]):
    record_path = f"/tables/device/{devices['lamp']}/"
    for path, above in {
        "/tables/device/": ["/tables/"],
        "/tables/device/?sysparm_query=nonsense": ["/tables/"],
        record_path: ["/tables/", "/tables/device/"],
        f"{record_path}activity/": ["/tables/", "/tables/device/", record_path],
    }.items():
        text = as_bob.get(path).content.decode()
        assert hrefs_of(text.partition('aria-label="Breadcrumb"')[2].partition("</nav>")[0]) == above


def test_search_also_finds_the_beginning_of_a_number_and_a_name(as_bob: Client):
    table("ticket", number_prefix="TIC")
    field("ticket", "name", is_display=True)
    field("ticket", "about", is_indexed=True)
    open_table("ticket")
    found = record("ticket", number="TIC0000001", name="Printer", about="smoke")
    record("ticket", number="TIC0000002", name="Pump", about="Water")
    for words in ("tic0000001", "pri", "smoke"):
        response = as_bob.get("/tables/ticket/", {"q": words}, follow=True)
        assert [row[1:19] for row in rows_of(response.content.decode())] == [found]
    assert 'name="q" value="smoke"' in response.content.decode()


@pytest.mark.parametrize(
    "query", ["name", "nonsense=1", "(state=1", "ORDERBYstory.name", "bought>yesterday", "state=1^ORDERBY"]
)
def test_invalid_query_can_be_corrected(as_bob: Client, devices: dict[str, str], query: str):
    text = page_of(as_bob, status=400, sysparm_query=query, columns="name")
    assert f'name="sysparm_query" rows="3" spellcheck="false">\n{escape(query)}</textarea>' in text
    assert 'role="alert"' in text and 'name="columns" value="name"' in text


def test_parameters_of_another_list_can_be_corrected(as_bob: Client, devices: dict[str, str]):
    for parameters in ({"sysparm_cursor": "wrong"}, {"sysparm_view": "missing"}, {"sysparm_page": "0"}):
        assert 'role="alert"' in page_of(as_bob, status=400, **parameters)


@pytest.fixture
def note_ids(db: Any) -> list[str]:
    table("note")
    field("note", "name", is_display=True)
    open_table("note")
    return [record("note", name=f"n{number:03}") for number in range(120)]


def test_load_more_continues_after_the_last_row(as_bob: Client, note_ids: list[str]):
    text = page_of(as_bob, "/tables/note/", sysparm_query="ORDERBYname")
    found = rows_of(text)
    for _ in range(2):
        url = next(href for href in hrefs_of(text) if "sysparm_cursor" in href and "list=" not in href)
        text = as_bob.get(url, headers=HTMX).content.decode()
        assert "<html" not in text
        found += rows_of(text)
        assert len(rows_of(as_bob.get(url).content.decode())) == len(rows_of(text))
    assert [row[1:19] for row in found] == note_ids and "Load more" not in text
    assert "First page" in as_bob.get(url).content.decode()


def test_records_are_counted_on_demand(as_bob: Client, note_ids: list[str]):
    assert "120 records" not in page_of(as_bob, "/tables/note/")
    assert "120 records" in page_of(as_bob, "/tables/note/", count="1")
    assert as_bob.get("/tables/note/?count=1", headers=HTMX).content.decode().strip() == "120 records"
    assert "1 record" in page_of(as_bob, "/tables/note/", sysparm_query="name=n003")  # without a count


def test_groups_have_counts_and_lead_to_their_records(as_bob: Client, devices: dict[str, str]):
    text = page_of(as_bob, group="maker", sysparm_query="nameISNOTEMPTY^ORDERBYname")
    groups = text.partition('<ul class="item-list groups">')[2].partition("</ul>")[0]
    assert "Lux</a>" in groups and "2 records" in groups and "(empty)</a>" in groups and "1 record<" in groups
    lists = [rows_of(as_bob.get(href).content.decode()) for href in hrefs_of(groups)]
    assert [len(rows) for rows in lists] == [2, 1] and devices["desk"] in lists[1][0]


@pytest.mark.parametrize(("column", "counts"), [("state", [2, 1]), ("bought", [2, 1]), ("name", [1, 1, 1])])
def test_each_group_contains_as_many_records_as_it_counts(
    as_bob: Client, devices: dict[str, str], column: str, counts: list[int]
):
    groups = page_of(as_bob, group=column).partition('<ul class="item-list groups">')[2].partition("</ul>")[0]
    assert [len(rows_of(as_bob.get(href).content.decode())) for href in hrefs_of(groups)] == counts


def test_curl_command_works_in_a_shell(as_bob: Client, devices: dict[str, str]):
    text = page_of(as_bob, columns="name", sysparm_query='name=it\'s "$HOME"^ORDERBYname')
    command = unescape(text.partition('id="copy-curl">')[2].partition("</code>")[0])
    assert '-H "Authorization: Bearer $TOKEN"' in command and "/rest/v1/table/device" in command
    assert "'sysparm_query=name=it'\"'\"'s \"$HOME\"^ORDERBYname'" in command


def export(client: Client, **parameters: str) -> Any:
    return client.get("/tables/device/export/", parameters)


def test_export_contains_the_query_and_the_columns(as_bob: Client, devices: dict[str, str]):
    response = export(
        as_bob, format="csv", sysparm_query="maker.name=Lux^ORDERBYname", columns="name,maker,state,price"
    )
    assert (
        b"".join(response).decode("utf-8-sig") == "Name of the device,Maker,State\n<b>Lamp</b>,Lux,New\nChair,Lux,New\n"
    )
    assert response["Content-Disposition"] == 'attachment; filename="device.csv"'
    response = export(as_bob, format="jsonl", sysparm_query="name=Desk", columns="name,state")
    assert json.loads(b"".join(response)) == {"name": "Desk", "state": "Old"}


def test_export_keeps_formulas_on_request(as_bob: Client, devices: dict[str, str]):
    record("device", name="=1+1")
    parameters = {"format": "csv", "columns": "name", "sysparm_query": "nameSTARTSWITH="}
    assert b"".join(export(as_bob, **parameters)) == codecs.BOM_UTF8 + b"Name of the device\n'=1+1\n"
    assert b"".join(export(as_bob, **parameters, sysparm_keep_formulas="1")).endswith(b"\n=1+1\n")


def test_refused_export_leads_back_to_the_list_with_a_message(
    as_bob: Client, devices: dict[str, str], monkeypatch: Any
):
    from tableapi.read import export as export_module

    assert export_module.EXPORT_SLOTS.acquire(blocking=False)
    try:
        response = as_bob.get("/tables/device/export/", {"format": "csv", "columns": "name"}, follow=True)
    finally:
        export_module.EXPORT_SLOTS.release()
    assert "Another export is running" in response.content.decode() and response.status_code == 200
    assert (
        "format must be one of csv, jsonl, xlsx" in as_bob.get("/tables/device/export/", follow=True).content.decode()
    )


def test_new_button_is_shown_to_those_who_may_create(as_bob: Client):
    table("closed")
    field("closed", "name")
    rule("read", "closed")
    assert "/tables/closed/new/" not in page_of(as_bob, "/tables/closed/")
    rule("create", "closed")
    assert "/tables/closed/new/" in page_of(as_bob, "/tables/closed/")


def test_those_who_may_only_create_see_no_records(as_bob: Client):
    table("inbox")
    field("inbox", "name")
    rule("create", "inbox")
    record("inbox", name="secret")
    text = page_of(as_bob, "/tables/inbox/")
    assert "cannot read records" in text and "/tables/inbox/new/" in text and "secret" not in text


def test_empty_list_says_what_to_do(as_bob: Client, devices: dict[str, str]):
    assert "Show all records of Device" in page_of(as_bob, sysparm_query="name=missing")
    table("empty")
    open_table("empty")
    assert "Create the first one" in page_of(as_bob, "/tables/empty/")


def test_view_decides_about_the_columns(as_bob: Client, devices: dict[str, str]):
    view("device", "list", "state", "maker.city")
    view("device", "short", "name", "price")
    assert f"Maker{PATH_SEPARATOR}City" in page_of(as_bob)
    text = page_of(as_bob, sysparm_view="short")
    assert 'data-path="name"' in text and 'data-path="state"' not in text and 'data-path="price"' not in text


def test_page_requires_a_session(devices: dict[str, str]):
    assert Client().get("/tables/device/").status_code == 302
    assert Client().get("/tables/device/", headers=HTMX)["HX-Refresh"] == "true"


def test_a_list_costs_few_statements_more_than_the_api(as_bob: Client, bob: User, devices: dict[str, str]):
    statements: dict[str, list[str]] = {}
    client, url = api(bob, credential="key"), "device?sysparm_limit=50"
    for _ in range(2):  # the second time, with filled caches
        with captured_statements() as statements["page"]:
            page_of(as_bob)
        with captured_statements() as statements["api"]:
            assert client.get(url).status_code == 200
    assert len(statements["page"]) <= len(statements["api"]) + 4, "\n".join(statements["page"])


def test_saved_lists_are_read_only_where_there_are_some(as_bob: Client, devices: dict[str, str]):
    with captured_statements() as before:
        page_of(as_bob)
    as_bob.post("/tables/device/saved/?sysparm_query=state%3D1", {"name": "New ones"})
    with captured_statements() as after:
        assert "New ones" in page_of(as_bob)
    assert len(after) == len(before) + 1
