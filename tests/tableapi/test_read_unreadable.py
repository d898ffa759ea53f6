"""No response contains unreadable data, and no query can reveal it."""

from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.world import api, column_values, data_of, error_of, field, grant, record, rule, table, view

pytestmark = pytest.mark.django_db

# Queries with every operator; NAME is the column.
PROBE_QUERIES = (
    "NAMESTARTSWITHa",
    "NAME=a",
    "NAME!=a",
    "NAME>a",
    "NAME<a",
    "NAME>=a",
    "NAME<=a",
    "NAMEINa,b",
    "NAMENOT INa,b",
    "NAMELIKEa",
    "NAMECONTAINSa",
    "NAMENOTLIKEa",
    "NAMEENDSWITHa",
    "NAMEISEMPTY",
    "NAMEISNOTEMPTY",
    "NAME=",
    "NAME!=",
    "NAMEEMPTYSTRING",
    "NAMEANYTHING",
    "NAMENOTHING",
    "NAMEBETWEENa@b",
    "NAMESAMEASname",
    "NAMENSAMEASname",
    "nameSAMEASNAME",
    "nameNSAMEASNAME",
    "NAMEGT_FIELDname",
    "sys_created_atGT_FIELDNAME",
    "NAMEON2024-01-01",
    "sys_created_atMORETHANNAME@day@after@1",
    "NAMEDYNAMICme",
    "NAMEHAS1",
    "NAME=javascript:gs.now()",
    "NAME>not a date",
    "name=a^ORNAME=b",
    "name=a^NQNAME=b",
    "(NAME=a)^name=b",
    "nameANYTHING^ORDERBYNAME",
    "ORDERBYNAME",
    "ORDERBYDESCNAME",
    "ORDERBYname^ORDERBYDESCNAME",
    "NAME.login=a",
    "NAME.nothing=a",
    "ORDERBYNAME.login",
)


@pytest.fixture
def shop_records(db: Any) -> dict[str, str]:
    """Record ids by name. Bob may read devices without their secrets and open makers, but no vault."""
    table("vault")
    field("vault", "name", is_display=True)
    table("maker")
    field("maker", "name", is_display=True)
    field("maker", "rating", "integer")
    field("maker", "is_open", "boolean")
    field("maker", "vault", target="vault")
    table("device")
    field("device", "name", is_display=True)
    field("device", "secret_a", max_length=100)
    field("device", "secret_r", target="maker")
    field("device", "maker", target="maker")
    field("device", "vault", target="vault")
    field("device", "makers", "list", target="maker")
    rule("read", "vault", roles=["keeper"])
    rule("read", "maker", condition="is_open=true")
    rule("read", "maker", "rating", roles=["keeper"])
    rule("read", "device")
    for name in ("secret_a", "secret_r"):
        rule("read", "device", name, roles=["keeper"])
    ids = {"gold": record("vault", name="Gold")}
    ids["lux"] = record("maker", name="Lux", rating=5, is_open=True, vault=ids["gold"])
    ids["nox"] = record("maker", name="Nox", rating=1, is_open=False)
    ids["lamp"] = record("device", name="Lamp", secret_a="abc", maker=ids["lux"], vault=ids["gold"])
    ids["moon"] = record(
        "device",
        name="Moon",
        secret_a="xyz",
        secret_r=ids["lux"],
        maker=ids["nox"],
        makers=[ids["nox"], ids["lux"]],
    )
    return ids


def probe_error(caller: Any, path: str, query: str, name: str, unknown_name: str) -> tuple[int, str, str | None]:
    """The error for a hidden column; fails unless an unknown name of the same length gets the same response."""
    assert len(name) == len(unknown_name)
    hidden_response = caller.get(path, query=query.replace("NAME", name))
    unknown_response = caller.get(path, query=query.replace("NAME", unknown_name))
    assert hidden_response.status_code == unknown_response.status_code, query
    assert hidden_response.content.replace(name.encode(), b"?") == unknown_response.content.replace(
        unknown_name.encode(), b"?"
    ), query
    assert {**hidden_response.headers, "X-Request-ID": ""} == {**unknown_response.headers, "X-Request-ID": ""}
    return error_of(hidden_response)


@pytest.mark.parametrize(("name", "unknown_name"), [("secret_a", "nothing_"), ("secret_r", "nothing_")])
def test_unreadable_column_is_like_an_unknown_one(shop_records: Any, bob: User, name: str, unknown_name: str):
    caller = api(bob, credential="key")  # B01 B02 B15 B18 B19
    for query in PROBE_QUERIES:
        status, code, _ = probe_error(caller, "device", query, name, unknown_name)
        assert (status, code) == (400, "unknown_field"), query


def test_permitted_caller_can_query_the_column(shop_records: Any, bob: User):
    grant(bob, "keeper")
    assert column_values(api(bob).get("device", query="secret_aSTARTSWITHa", fields="name"), "name") == ["Lamp"]
    assert column_values(api(bob).get("device", query="ORDERBYDESCsecret_a", fields="name"), "name") == ["Moon", "Lamp"]
    assert column_values(
        api(bob).get("device", query="ORDERBYDESCmaker.rating", fields="maker.rating"), "maker.rating"
    ) == [None, 5]


@pytest.mark.parametrize(
    ("name", "unknown_name"),
    [
        ("maker.rating", "maker.nothin"),  # B04: an unreadable last column
        ("vault.name", "maker.nono"),  # B05: through a hidden table
        ("vault.sys_id", "maker.nonono"),
        ("maker.vault.name", "maker.nonon.name"),
        ("secret_r.name", "nothing_.name"),  # B05: through a hidden column to an existing name
        ("secret_r.sys_id", "nothing_.sys_id"),
        ("makers.name", "nothin.name"),  # paths cannot go through lists
        ("name.sys_id", "nono.sys_id"),
    ],
)
def test_path_through_a_hidden_column_is_unknown(shop_records: Any, bob: User, name: str, unknown_name: str):
    caller = api(bob, credential="key")
    for query in ("NAME=a", "NAME!=a", "NAMEISEMPTY", "NAMEANYTHING", "ORDERBYNAME", "nameSAMEASNAME", "NAMEIN1,2"):
        status, code, _ = probe_error(caller, "device", query, name, unknown_name)
        assert (status, code) == (400, "unknown_field"), query
    response = caller.get("device", fields=f"name,{name}")
    assert response["X-Ignored-Fields"] == name and list(data_of(response)[0]) == ["name"]


def test_errors_repeat_the_input_with_its_position(shop_records: Any, bob: User):
    for query, name, position in (
        ("name=a^secret_a=b", "secret_a", 7),
        ("name=a^ORDERBYsecret_a", "secret_a", 14),
        ("nameSAMEASsecret_a", "secret_a", 10),
        ("maker.rating=1", "maker.rating", 0),
    ):
        (error,) = api(bob).get("device", query=query).json()["errors"]
        message = f'There is no column named "{name}".'
        assert error == {"message": message, "code": "unknown_field", "field": name, "position": position}, query


class TestHiddenRecords:
    def test_path_to_a_hidden_record_is_null(self, shop_records: dict[str, str], bob: User):  # B06
        response = api(bob).get("device", fields="name,maker.name,maker.sys_id,maker.is_open,maker")
        lamp, moon = data_of(response)
        assert (lamp["maker.name"], lamp["maker.is_open"]) == ("Lux", True)
        assert (moon["maker.name"], moon["maker.sys_id"], moon["maker.is_open"]) == (None, None, None)
        assert moon["maker"]["value"] == shop_records["nox"], "the id belongs to the device"

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("maker.name=Nox", []), ("maker.name!=Nox", ["Lamp", "Moon"]), ("maker.nameISEMPTY", ["Moon"]),
            ("maker.name=", ["Moon"]), ("maker.nameISNOTEMPTY", ["Lamp"]), ("maker.nameSTARTSWITHN", []),
            ("maker.is_open=false", []), ("maker.is_open!=true", ["Moon"]), ("maker.nameINNox,Lux", ["Lamp"]),
            ("maker.nameNOT INLux", ["Moon"]), ("maker.sys_idISEMPTY", ["Moon"]), ("maker.nameSAMEASname", []),
            ("ORDERBYmaker.name", ["Lamp", "Moon"]), ("ORDERBYDESCmaker.name", ["Moon", "Lamp"]),
        ],
    )  # fmt: skip
    def test_filter_treats_a_hidden_record_as_null(
        self, shop_records: Any, bob: User, query: str, expected: list[str]
    ):  # B06
        response = api(bob).get("device", query=query, fields="name", count="exact")
        assert column_values(response, "name") == expected and response["X-Total-Count"] == str(len(expected))

    def test_hidden_record_has_no_display_value(self, shop_records: dict[str, str], bob: User):  # B10
        lamp, moon = data_of(api(bob).get("device", display_value="all", fields="maker,makers,vault"))
        base_url = "http://testserver/rest/v1/table"
        assert lamp["maker"] == {
            "value": shop_records["lux"],
            "display_value": "Lux",
            "link": f"{base_url}/maker/{shop_records['lux']}",
        }
        hidden_reference = {
            "value": shop_records["nox"],
            "display_value": None,
            "link": f"{base_url}/maker/{shop_records['nox']}",
        }  # B11
        assert moon["maker"] == hidden_reference and moon["makers"] == [hidden_reference, lamp["maker"]]
        assert lamp["vault"] == {
            "value": shop_records["gold"], "display_value": None, "link": f"{base_url}/vault/{shop_records['gold']}",
        }  # fmt: skip
        lamp, moon = data_of(
            api(bob).get("device", display_value=1, exclude_reference_link=1, fields="maker,makers,vault")
        )
        assert (lamp["maker"], lamp["vault"], moon["maker"], moon["makers"]) == ("Lux", None, None, [None, "Lux"])

    def test_hidden_display_column_gives_no_display_value(self, shop_records: dict[str, str], bob: User):  # B10
        rule("read", "maker", "name", condition="rating=1")
        lamp, _ = data_of(api(bob).get("device", display_value=1, exclude_reference_link=1, fields="maker,maker.name"))
        assert lamp == {"maker": None, "maker.name": None}
        rule("read", "maker", "name", condition="rating=5")
        lamp, _ = data_of(api(bob).get("device", display_value=1, exclude_reference_link=1, fields="maker,maker.name"))
        assert lamp == {"maker": "Lux", "maker.name": "Lux"}

    def test_conditional_reference_gives_no_display_value(self, shop_records: dict[str, str], bob: User):  # B10
        rule("read", "device", "vault", condition="name=Lamp")
        rule("read", "device", "makers", condition="name=Moon")
        for display_value in (0, 1, "all"):
            for exclude_links in (0, 1):
                lamp, moon = data_of(
                    api(bob).get("device", display_value=display_value, exclude_reference_link=exclude_links)
                )
                assert moon["vault"] in (None, dict.fromkeys(("value", "display_value", "link")[: 3 - exclude_links]))
                assert (shop_records["gold"] in str(lamp["vault"])) is not (display_value == 1 and exclude_links == 1)

    def test_hidden_reference_column_is_omitted(self, shop_records: Any, bob: User, alice: User):  # B10
        for options in ({}, {"display_value": "all"}, {"display_value": 1}):
            assert all("secret_r" not in record for record in data_of(api(bob).get("device", **options)))
        assert "secret_r" in data_of(api(alice).get("device"))[0]


class TestLists:
    @pytest.fixture
    def visible_numbers(self, db: Any) -> list[str]:
        """The ids of the ten records, of 30, that Bob may read."""
        table("number")
        field("number", "value", "integer", is_indexed=True)
        field("number", "is_open", "boolean")
        rule("read", "number", condition="is_open=true")
        ids = [record("number", value=value, is_open=value % 3 == 0) for value in range(30)]
        return ids[::3]

    def test_pages_counts_and_links_cover_only_visible_records(self, visible_numbers: list[str], bob: User):  # B12 B13
        pages = []
        for page in range(1, 6):
            response = api(bob).get("number", limit=3, page=page, count="exact")
            pages.append(column_values(response, "sys_id"))
            assert response["X-Total-Count"] == "10"
            assert ("Link" in response) is (page < 4)
        assert [len(page) for page in pages] == [3, 3, 3, 1, 0]
        assert [number for page in pages for number in page] == visible_numbers
        assert api(bob).get("number", count="estimated")["X-Total-Count"] == "10"
        assert "Link" not in api(bob).get("number", limit=10)

    def test_hidden_records_do_not_shift_pages(self, visible_numbers: list[str], bob: User):  # B13
        pages_before = [api(bob).get("number", limit=4, page=page).content for page in (1, 2, 3)]
        for value in range(-5, 30):
            record("number", sys_id=f"0{value + 5}", value=value, is_open=False)
        assert [api(bob).get("number", limit=4, page=page).content for page in (1, 2, 3)] == pages_before

    def test_default_order_is_by_id(self, shop_records: dict[str, str], bob: User):  # B03
        rule("read", "device", "name", roles=["keeper"])
        first_device = record("device", sys_id="1", name="Zebra")
        last_device = record("device", sys_id="z", name="Ape")
        listed_ids = column_values(api(bob).get("device", fields="sys_id"), "sys_id")
        assert listed_ids == [first_device, shop_records["lamp"], shop_records["moon"], last_device]

    def test_view_reveals_no_hidden_columns(self, shop_records: Any, bob: User):  # B09
        view("device", "all", "name", "secret_a", "vault.name", "maker.rating", "maker.name")
        assert list(data_of(api(bob).get("device", view="all"))[0]) == ["name", "maker.name"]


class TestConditionallyReadableColumns:
    """Only the prices of open items can be read; all others are null."""

    @pytest.fixture
    def price_tables(self, db: Any) -> None:
        table("item")
        field("item", "name")
        field("item", "price", "integer", is_indexed=True)
        field("item", "is_open", "boolean")
        field("item", "twin", target="item")
        rule("read", "item")
        rule("read", "item", "price", condition="is_open=true")
        for number, (name, price, is_open) in enumerate(
            [("a", 10, True), ("b", 99, False), ("c", 20, True), ("d", None, True), ("e", 1, False), ("f", 20, True)]
        ):
            record("item", name=name, price=price, is_open=is_open, sys_id=f"{number}")
        record("item", name="g", is_open=True, price=30, twin="1", sys_id="7")

    def listed_names(self, caller: Any, **options: Any) -> str:
        return "".join(column_values(caller.get("item", fields="name", **options), "name"))

    def test_hidden_value_is_null_in_the_response(self, price_tables: None, bob: User, alice: User):
        assert column_values(api(bob).get("item", fields="price"), "price") == [10, None, 20, None, None, 20, 30]
        assert column_values(api(alice).get("item", fields="price"), "price") == [10, 99, 20, None, 1, 20, 30]
        assert data_of(api(bob).get("item/1", fields="price,name")) == [{"price": None, "name": "b"}]
        assert data_of(api(bob).get("item/7", fields="twin.price,twin.name")) == [
            {"twin.price": None, "twin.name": "b"}
        ]

    @pytest.mark.parametrize(
        ("query", "expected"),
        [
            ("price=99", ""),
            ("price>0", "acfg"),
            ("price<5", ""),
            ("price!=99", "abcdefg"),
            ("priceISEMPTY", "bde"),
            ("priceISNOTEMPTY", "acfg"),
            ("priceIN99,1,10", "a"),
            ("priceNOT IN10", "bcdefg"),
            ("priceBETWEEN1@100", "acfg"),
            ("twin.price=99", ""),
            ("twin.priceISEMPTY^twinISNOTEMPTY", "g"),
            ("priceSAMEAStwin.price", "bde"),
            ("priceANYTHING", "abcdefg"),
            ("priceGT_OR_EQUALS_FIELDsys_version", "acfg"),
        ],
    )
    def test_hidden_value_is_null_in_filters_and_counts(self, price_tables: None, bob: User, query: str, expected: str):
        response = api(bob).get("item", query=query, fields="name", count="exact")
        assert "".join(column_values(response, "name")) == expected
        assert response["X-Total-Count"] == str(len(expected))

    @pytest.mark.parametrize(("query", "order"), [("ORDERBYprice", "acfgbde"), ("ORDERBYDESCprice", "edbgfca")])
    def test_hidden_value_is_null_in_the_order_and_the_cursor(
        self, price_tables: None, bob: User, query: str, order: str
    ):
        assert self.listed_names(api(bob), query=query) == order
        names, cursor = "", ""
        while True:
            response = api(bob).get(
                "item", query=query, fields="name", limit=1, **({"cursor": cursor} if cursor else {})
            )
            names += "".join(column_values(response, "name"))
            if "Link" not in response:
                break
            cursor = response["Link"].partition("sysparm_cursor=")[2].partition(">")[0]
        assert names == order

    def test_hidden_values_change_no_response(self, price_tables: None, bob: User):
        from tests.tableapi.designs import query_rows

        requests: list[dict[str, Any]] = [
            {"query": "ORDERBYprice", "limit": 3},
            {"query": "price>5"},
            {"display_value": "all"},
            {"count": "exact"},
        ]
        responses_before = [
            (response.content, response.get("Link"))
            for response in (api(bob).get("item", **request) for request in requests)
        ]
        query_rows("UPDATE records.item SET price = 15 WHERE NOT is_open")
        assert [
            (response.content, response.get("Link"))
            for response in (api(bob).get("item", **request) for request in requests)
        ] == responses_before
