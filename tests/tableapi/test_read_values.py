"""Values of each type in responses: stored values, display values, and both."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

STORED_VALUES: dict[str, Any] = {
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
RETURNED_VALUES = {
    **STORED_VALUES,
    "price": 12345678901234567890.10,
    "seen_at": "2024-05-19 13:45:06",
    "bought_on": "2024-02-29",
}
# Display values that differ from the stored values.
DISPLAY_VALUES = {"active": "No", "seen_at": "19 May 2024 13:45:06", "bought_on": "29 Feb 2024", "state": "In progress"}
ALL_COLUMNS = (*STORED_VALUES, "maker", "owners")


@pytest.fixture
def gadget(db: Any) -> None:
    table("maker")
    field("maker", "name", is_display=True)
    table("gadget")
    for name, type_name in {
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
        field("gadget", name, type_name)
    field("gadget", "state", choices={"1": "New", "2": "In progress", "q'%": "It's 100%"})
    field("gadget", "maker", target="maker")
    field("gadget", "owners", "list", target="maker")
    open_table("gadget")
    open_table("maker")


def read_one(user: User, sys_id: str, **options: Any) -> Any:
    """The values of a record; fails if a list returns other values."""
    (record_values,) = data_of(api(user).get(f"gadget/{sys_id}", fields=",".join(ALL_COLUMNS), **options))
    (list_values,) = data_of(api(user).get("gadget", query=f"sys_id={sys_id}", fields=",".join(ALL_COLUMNS), **options))
    assert record_values == list_values
    return record_values


def link_to(sys_id: str) -> str:
    return f"http://testserver/rest/v1/table/maker/{sys_id}"


def test_stored_values_are_returned_by_default(gadget: None, bob: User):
    lux, nox = record("maker", name="Lux"), record("maker", name="Nox")
    record_id = record("gadget", **STORED_VALUES, maker=lux, owners=[nox, lux])
    references = {
        "maker": {"value": lux, "link": link_to(lux)},
        "owners": [{"value": nox, "link": link_to(nox)}, {"value": lux, "link": link_to(lux)}],
    }

    for options in (
        {},
        {"display_value": 0},
        {"display_value": "false", "exclude_reference_link": "false"},
        {"display_value": "", "exclude_reference_link": "", "view": "", "count": "", "query_category": ""},
    ):
        assert read_one(bob, record_id, **options) == RETURNED_VALUES | references
    for value in (1, "true", "True", "TRUE"):
        assert read_one(bob, record_id, exclude_reference_link=value) == RETURNED_VALUES | {
            "maker": lux,
            "owners": [nox, lux],
        }
    content = api(bob).get(f"gadget/{record_id}", fields="price,count").content
    assert b"12345678901234567890.10" in content and b"9223372036854775807" in content


def test_display_values_replace_stored_values(gadget: None, bob: User):
    lux, nox = record("maker", name="Lux"), record("maker", name="Nox")
    record_id = record("gadget", **STORED_VALUES, maker=lux, owners=[nox, lux])

    for value in (1, "true"):
        assert read_one(bob, record_id, display_value=value) == RETURNED_VALUES | DISPLAY_VALUES | {
            "maker": {"display_value": "Lux", "link": link_to(lux)},
            "owners": [{"display_value": "Nox", "link": link_to(nox)}, {"display_value": "Lux", "link": link_to(lux)}],
        }
    values_without_links = read_one(bob, record_id, display_value=1, exclude_reference_link=1)
    assert values_without_links == RETURNED_VALUES | DISPLAY_VALUES | {"maker": "Lux", "owners": ["Nox", "Lux"]}


def test_all_returns_stored_and_display_values(gadget: None, bob: User):
    lux = record("maker", name="Lux")
    record_id = record("gadget", **STORED_VALUES, maker=lux, owners=[lux])
    plain_values = {
        name: {"value": RETURNED_VALUES[name], "display_value": DISPLAY_VALUES.get(name, RETURNED_VALUES[name])}
        for name in STORED_VALUES
    }
    lux_reference = {"value": lux, "display_value": "Lux"}

    values = read_one(bob, record_id, display_value="all")
    assert read_one(bob, record_id, display_value="ALL") == values
    assert values == plain_values | {
        "maker": lux_reference | {"link": link_to(lux)},
        "owners": [lux_reference | {"link": link_to(lux)}],
    }
    assert read_one(bob, record_id, display_value="all", exclude_reference_link=1) == plain_values | {
        "maker": lux_reference,
        "owners": [lux_reference],
    }


def test_empty_values_are_null(gadget: None, bob: User):
    null_record, blank_record = record("gadget"), record("gadget", name="", notes="", page="", owners=[])

    for sys_id in (null_record, blank_record):
        for options in (
            {},
            {"display_value": 1},
            {"display_value": 1, "exclude_reference_link": 1},
            {"exclude_reference_link": 1},
        ):
            assert read_one(bob, sys_id, **options) == dict.fromkeys(ALL_COLUMNS)  # fmt: skip
        all_values = read_one(bob, sys_id, display_value="all", exclude_reference_link=1)
        assert all_values.pop("owners") is None
        assert list(all_values.values()) == [{"value": None, "display_value": None}] * 11


@pytest.mark.parametrize("display_value", ["0", "1", "all"])
def test_json_is_returned_as_stored(gadget: None, bob: User, display_value: str):
    for value in (0, False, "", [], {}, "text", [None], 1.5, {"value": 1}):
        record_id = record("gadget", more=value)
        (row,) = data_of(api(bob).get(f"gadget/{record_id}", fields="more", display_value=display_value))
        returned_value = row["more"]["value"] if display_value == "all" else row["more"]
        assert returned_value == value and type(returned_value) is type(value)


def test_display_values_of_booleans_and_deleted_choices(gadget: None, bob: User):
    record_id = record("gadget", active=True, state="gone", bought_on="0001-01-01", seen_at="9999-12-31 23:59:59+00")
    assert (
        read_one(bob, record_id)["seen_at"] == "9999-12-31 23:59:59"
        and read_one(bob, record_id)["bought_on"] == "0001-01-01"
    )
    values = read_one(bob, record_id, display_value=1)
    assert (values["active"], values["state"], values["seen_at"]) == ("Yes", "gone", "31 Dec 9999 23:59:59")
    record_id = record("gadget", state="q'%")
    assert read_one(bob, record_id)["state"] == "q'%"
    assert read_one(bob, record_id, display_value=1)["state"] == "It's 100%"


def test_display_value_is_formatted_by_its_type(gadget: None, bob: User):
    table("room")
    field("room", "level", choices={"1": "Ground floor"}, is_display=True)
    field("gadget", "room", target="room")
    rule("read", "room")
    record_id = record("gadget", room=record("room", level="1"))
    params = {"fields": "room", "display_value": 1, "exclude_reference_link": 1}
    assert data_of(api(bob).get(f"gadget/{record_id}", **params)) == [{"room": "Ground floor"}]


def test_converted_text_is_returned_as_plain_text(gadget: None, bob: User, alice: User):
    from system import properties
    from tableapi.design import saving
    from tableapi.models import Column

    plain_note = record("gadget", notes="1 < 2 & <b>x</b>")
    column = Column.objects.get(name="notes", table__name="gadget")
    column.type = "wysiwyg"
    saving.save_column(column)
    formatted_note = record("gadget", notes="<p>Some <b>text</b></p>")
    assert read_one(bob, plain_note)["notes"] == "1 < 2 & <b>x</b>"
    assert read_one(bob, formatted_note)["notes"] == "Some text"

    properties.put(properties.WYSIWYG_COLUMNS, column.pk)
    assert read_one(bob, plain_note)["notes"] == "1 &lt; 2 &amp; &lt;b&gt;x&lt;/b&gt;"
    assert read_one(bob, formatted_note)["notes"] == "<p>Some <b>text</b></p>"
    records = data_of(api(bob).get("gadget", query="notesLIKE<b>", fields="sys_id"))
    assert records == [{"sys_id": plain_note}], "filters compare the plain text"


def test_secrets_are_never_returned(gadget: None, alice: User):  # B28
    field("gadget", "pin", "password")
    field("gadget", "token", "secret")
    record_id = record("gadget", name="Lamp", pin="stored-pin", token="stored-token")

    for caller in (api(alice), api(alice, credential="key")):
        for options in ({}, {"display_value": "all"}, {"display_value": 1}):
            response = caller.get(f"gadget/{record_id}", **options)
            assert data_of(response)[0].keys().isdisjoint({"pin", "token"}) and b"stored" not in response.content
        for name in ("pin", "token"):
            named_response = caller.get(f"gadget/{record_id}", fields=f"name,{name}")
            assert data_of(named_response) == [{"name": "Lamp"}] and named_response["X-Ignored-Fields"] == name
            unknown_content = caller.get("gadget", query="xyz=1").content
            for query in (f"{name}ISEMPTY", f"{name}ISNOTEMPTY", f"{name}=x", f"{name}ANYTHING", f"nameSAMEAS{name}"):
                response = caller.get("gadget", query=query)
                assert error_of(response) == (400, "unknown_field", name), query
            assert error_of(caller.get("gadget", query=f"ORDERBY{name}")) == (400, "unknown_field", name)
            secret_content = caller.get("gadget", query=f"{name}=1").content
            assert secret_content == unknown_content.replace(b"xyz", name.encode())


def test_microseconds_are_not_shown(gadget: None, bob: User):
    gadget_id = record("gadget", name="Lamp")
    ((created_at,),) = query_rows("SELECT sys_created_at FROM records.gadget")
    (row,) = data_of(api(bob).get(f"gadget/{gadget_id}", fields="sys_created_at"))
    assert row["sys_created_at"] == created_at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


NAMES_IN_GENERATED_SQL = (
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


def test_column_names_can_match_names_in_the_generated_sql(bob: User):  # B38
    table("odd")
    for name in NAMES_IN_GENERATED_SQL:
        field("odd", name, is_display=name == "x")
    field("odd", "others", "list", target="odd")
    field("odd", "other", target="odd")
    open_table("odd")
    values = {name: f"<{name}>" for name in NAMES_IN_GENERATED_SQL}
    first_record = record("odd", **values)
    second_record = record("odd", other=first_record, others=[first_record])
    assert data_of(api(bob).get(f"odd/{first_record}", fields=",".join(NAMES_IN_GENERATED_SQL))) == [values]
    parameters = {"display_value": 1, "exclude_reference_link": 1, "fields": "other,others,other.t5"}
    assert data_of(api(bob).get(f"odd/{second_record}", **parameters)) == [
        {"other": "<x>", "others": ["<x>"], "other.t5": "<t5>"}
    ]
    for name in NAMES_IN_GENERATED_SQL:
        query = f"{name}IN<{name}>,a^other.{name}ISEMPTY^ORDERBY{name}^ORDERBYDESCother.{name}"
        assert data_of(api(bob).get("odd", query=query, fields="sys_id", limit=1)) == [{"sys_id": first_record}], name
