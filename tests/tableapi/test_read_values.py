"""Values of each type in responses: stored values, display values, and both."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.designs import ask
from tests.tableapi.world import api, data, failed, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

STORED: dict[str, Any] = {
    "name": "Lamp",
    "notes": 'two\nlines "quoted" \\ <b> ✓ \u202e %s %%',
    "page": "<p>One <b>two</b></p>",
    "count": 2**63 - 1,
    "price": Decimal("12345678901234567890.10"),
    "active": False,
    "seen_at": datetime(2024, 5, 19, 13, 45, 6, 999999, UTC),
    "bought_on": datetime(2024, 2, 29, tzinfo=UTC).date(),
    "state": "2",
    "more": {"b": [1, None, {"a": "é"}], "a": 1.5},
}
VALUES = {
    **STORED,
    "price": 12345678901234567890.10,
    "seen_at": "2024-05-19 13:45:06",
    "bought_on": "2024-02-29",
}
# Where people read something else than what is stored.
DISPLAYED = {"active": "No", "seen_at": "19 May 2024 13:45:06", "bought_on": "29 Feb 2024", "state": "In progress"}
COLUMNS = (*STORED, "maker", "owners")


@pytest.fixture
def gadget(db: Any) -> None:
    table("maker")
    field("maker", "name", is_display=True)
    table("gadget")
    for name, kind in {
        "name": "string",
        "notes": "text",
        "page": "wysiwyg",
        "count": "integer",
        "price": "decimal",
        "active": "boolean",
        "seen_at": "datetime",
        "bought_on": "date",
        "more": "json",
    }.items():
        field("gadget", name, kind)
    field("gadget", "state", choices={"1": "New", "2": "In progress", "q'%": "It's 100%"})
    field("gadget", "maker", to="maker")
    field("gadget", "owners", "list", to="maker")
    open_table("gadget")
    open_table("maker")


def one(caller: User, sys_id: str, **asked: Any) -> Any:
    """The same alone and in a list."""
    (single,) = data(api(caller).get(f"gadget/{sys_id}", fields=",".join(COLUMNS), **asked))
    (many,) = data(api(caller).get("gadget", query=f"sys_id={sys_id}", fields=",".join(COLUMNS), **asked))
    assert single == many
    return single


def link(sys_id: str) -> str:
    return f"http://testserver/rest/v1/table/maker/{sys_id}"


def test_stored_values(gadget: None, bob: User):
    lux, nox = record("maker", name="Lux"), record("maker", name="Nox")
    created = record("gadget", **STORED, maker=lux, owners=[nox, lux])
    references = {
        "maker": {"value": lux, "link": link(lux)},
        "owners": [{"value": nox, "link": link(nox)}, {"value": lux, "link": link(lux)}],
    }

    for asked in (
        {},
        {"display_value": 0},
        {"display_value": "false", "exclude_reference_link": "false"},
        {"display_value": "", "exclude_reference_link": "", "view": "", "count": "", "query_category": ""},
    ):
        assert one(bob, created, **asked) == VALUES | references
    for given in (1, "true", "True", "TRUE"):
        assert one(bob, created, exclude_reference_link=given) == VALUES | {"maker": lux, "owners": [nox, lux]}
    body = api(bob).get(f"gadget/{created}", fields="price,count").content
    assert b"12345678901234567890.10" in body and b"9223372036854775807" in body


def test_display_values(gadget: None, bob: User):
    lux, nox = record("maker", name="Lux"), record("maker", name="Nox")
    created = record("gadget", **STORED, maker=lux, owners=[nox, lux])

    for given in (1, "true"):
        assert one(bob, created, display_value=given) == VALUES | DISPLAYED | {
            "maker": {"display_value": "Lux", "link": link(lux)},
            "owners": [{"display_value": "Nox", "link": link(nox)}, {"display_value": "Lux", "link": link(lux)}],
        }
    bare = one(bob, created, display_value=1, exclude_reference_link=1)
    assert bare == VALUES | DISPLAYED | {"maker": "Lux", "owners": ["Nox", "Lux"]}


def test_values_with_display_values(gadget: None, bob: User):
    lux = record("maker", name="Lux")
    created = record("gadget", **STORED, maker=lux, owners=[lux])
    plain = {name: {"value": VALUES[name], "display_value": DISPLAYED.get(name, VALUES[name])} for name in STORED}
    both = {"value": lux, "display_value": "Lux"}

    result = one(bob, created, display_value="all")
    assert one(bob, created, display_value="ALL") == result
    assert result == plain | {"maker": both | {"link": link(lux)}, "owners": [both | {"link": link(lux)}]}
    assert one(bob, created, display_value="all", exclude_reference_link=1) == plain | {"maker": both, "owners": [both]}


def test_empty_values_are_null(gadget: None, bob: User):
    none, blank = record("gadget"), record("gadget", name="", notes="", page="", owners=[])

    for made in (none, blank):
        for asked in (
            {},
            {"display_value": 1},
            {"display_value": 1, "exclude_reference_link": 1},
            {"exclude_reference_link": 1},
        ):
            assert one(bob, made, **asked) == dict.fromkeys(COLUMNS)  # fmt: skip
        both = one(bob, made, display_value="all", exclude_reference_link=1)
        assert both.pop("owners") is None
        assert list(both.values()) == [{"value": None, "display_value": None}] * 11


@pytest.mark.parametrize("display", ["0", "1", "all"])
def test_json_is_answered_as_stored(gadget: None, bob: User, display: str):
    for value in (0, False, "", [], {}, "text", [None], 1.5, {"value": 1}):
        created = record("gadget", more=value)
        (row,) = data(api(bob).get(f"gadget/{created}", fields="more", display_value=display))
        output = row["more"]["value"] if display == "all" else row["more"]
        assert output == value and type(output) is type(value)


def test_display_of_booleans_and_deleted_choices(gadget: None, bob: User):
    created = record("gadget", active=True, state="gone", bought_on="0001-01-01", seen_at="9999-12-31 23:59:59+00")
    assert one(bob, created)["seen_at"] == "9999-12-31 23:59:59" and one(bob, created)["bought_on"] == "0001-01-01"
    output = one(bob, created, display_value=1)
    assert (output["active"], output["state"], output["seen_at"]) == ("Yes", "gone", "31 Dec 9999 23:59:59")
    created = record("gadget", state="q'%")
    assert one(bob, created)["state"] == "q'%"
    assert one(bob, created, display_value=1)["state"] == "It's 100%"


def test_display_value_is_formatted_by_its_type(gadget: None, bob: User):
    table("room")
    field("room", "level", choices={"1": "Ground floor"}, is_display=True)
    field("gadget", "room", to="room")
    rule("read", "room")
    created = record("gadget", room=record("room", level="1"))
    query = {"fields": "room", "display_value": 1, "exclude_reference_link": 1}
    assert data(api(bob).get(f"gadget/{created}", **query)) == [{"room": "Ground floor"}]


def test_converted_text_is_returned_as_plain_text(gadget: None, bob: User, alice: User):
    from system import properties
    from tableapi.design import saving
    from tableapi.models import Column

    before = record("gadget", notes="1 < 2 & <b>x</b>")
    column = Column.objects.get(name="notes", table__name="gadget")
    column.type = "wysiwyg"
    saving.save_column(column)
    after = record("gadget", notes="<p>Some <b>text</b></p>")
    assert one(bob, before)["notes"] == "1 < 2 & <b>x</b>"
    assert one(bob, after)["notes"] == "Some text"

    properties.put(properties.WYSIWYG_COLUMNS, column.pk)
    assert one(bob, before)["notes"] == "1 &lt; 2 &amp; &lt;b&gt;x&lt;/b&gt;"
    assert one(bob, after)["notes"] == "<p>Some <b>text</b></p>"
    records = data(api(bob).get("gadget", query="notesLIKE<b>", fields="sys_id"))
    assert records == [{"sys_id": before}], "filters look at the plain text"


def test_secrets_are_never_returned(gadget: None, alice: User):  # B28
    field("gadget", "pin", "password")
    field("gadget", "token", "secret")
    created = record("gadget", name="Lamp", pin="stored-pin", token="stored-token")

    for caller in (api(alice), api(alice, by="key")):
        for asked in ({}, {"display_value": "all"}, {"display_value": 1}):
            response = caller.get(f"gadget/{created}", **asked)
            assert data(response)[0].keys().isdisjoint({"pin", "token"}) and b"stored" not in response.content
        for name in ("pin", "token"):
            asked_for = caller.get(f"gadget/{created}", fields=f"name,{name}")
            assert data(asked_for) == [{"name": "Lamp"}] and asked_for["X-Ignored-Fields"] == name
            unknown = caller.get("gadget", query="xyz=1").content
            for query in (f"{name}ISEMPTY", f"{name}ISNOTEMPTY", f"{name}=x", f"{name}ANYTHING", f"nameSAMEAS{name}"):
                response = caller.get("gadget", query=query)
                assert failed(response) == (400, "unknown_field", name), query
            assert failed(caller.get("gadget", query=f"ORDERBY{name}")) == (400, "unknown_field", name)
            mine = caller.get("gadget", query=f"{name}=1").content
            assert mine == unknown.replace(b"xyz", name.encode())


def test_microseconds_are_not_shown(gadget: None, bob: User):
    new = record("gadget", name="Lamp")
    ((created,),) = ask("SELECT sys_created_at FROM records.gadget")
    (row,) = data(api(bob).get(f"gadget/{new}", fields="sys_created_at"))
    assert row["sys_created_at"] == created.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


OURS = (
    "x",
    "u",
    "p",
    "r",
    "s",
    "c",
    "item",
    "place",
    "body",
    "version",
    "each",
    "k0",
    "k1",
    "p0",
    "me",
    "link",
    "order",
    "select",
    "value",
    "display_value",
    *(f"t{number}" for number in range(1, 25)),
)


def test_column_names_can_equal_sql_identifiers(bob: User):  # B38
    table("odd")
    for name in OURS:
        field("odd", name, is_display=name == "x")
    field("odd", "others", "list", to="odd")
    field("odd", "other", to="odd")
    open_table("odd")
    values = {name: f"<{name}>" for name in OURS}
    first = record("odd", **values)
    second = record("odd", other=first, others=[first])
    assert data(api(bob).get(f"odd/{first}", fields=",".join(OURS))) == [values]
    parameters = {"display_value": 1, "exclude_reference_link": 1, "fields": "other,others,other.t5"}
    assert data(api(bob).get(f"odd/{second}", **parameters)) == [
        {"other": "<x>", "others": ["<x>"], "other.t5": "<t5>"}
    ]
    for name in OURS:
        query = f"{name}IN<{name}>,a^other.{name}ISEMPTY^ORDERBY{name}^ORDERBYDESCother.{name}"
        assert data(api(bob).get("odd", query=query, fields="sys_id", limit=1)) == [{"sys_id": first}], name
