"""`GET /rest/v1/stats/{table}`."""

from typing import Any

import pytest

from accounts.models import User
from tableapi.models import Table
from tests.tableapi.world import api, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db
PATH = "/rest/v1/stats/part"


@pytest.fixture
def part(db: Any) -> Table:
    table("shop")
    field("shop", "name", is_display=True)
    field("shop", "city")
    new_table = table("part")
    field("part", "name")
    field("part", "quantity", "integer")
    field("part", "price", "decimal")
    field("part", "state", choices={"1": "New", "2": "Used"})
    field("part", "bought_at", "datetime")
    field("part", "is_spare", "boolean")
    field("part", "shop", target="shop")
    field("part", "data", "json")
    return new_table


@pytest.fixture
def shops_with_parts(part: Table) -> dict[str, str]:
    """Two shops and six parts; returns the ids of the shops by name."""
    open_table("shop")
    open_table("part")
    shops = {name: record("shop", name=name, city=city) for name, city in (("North", "Oslo"), ("South", "Rome"))}
    rows = [
        ("bolt", 10, "0.5", "1", "2026-01-31 23:00:00", "North"),
        ("Bolt", 20, "1.5", "1", "2026-02-01 01:00:00", "North"),
        ("nut", 30, None, "2", "2026-02-15 00:00:00", "South"),
        ("nut", None, "3", "2", "2026-05-01 00:00:00", "South"),
        ("cap", 5, "0.25", "1", None, None),
        (None, 1, "9", None, "2025-12-31 12:00:00", "North"),
    ]
    for name, quantity, price, state, bought_at, shop in rows:
        values = {"name": name, "quantity": quantity, "price": price, "state": state, "bought_at": bought_at}
        record("part", **values, shop=shops.get(shop or ""))
    return shops


def get_stats(user: User, **params: Any) -> list[dict[str, Any]]:
    return list(data_of(api(user).get(PATH, **params)))


def test_count_is_the_number_of_matching_records(shops_with_parts: Any, bob: User):
    assert get_stats(bob, count="true") == [{"count": 6}]
    assert get_stats(bob, count="true", query="quantity>5") == [{"count": 3}]
    assert get_stats(bob, count="true", query="quantity>500") == [{"count": 0}]


def test_aggregates_ignore_empty_values(shops_with_parts: Any, bob: User):
    (entry,) = get_stats(bob, sum_fields="quantity", avg_fields="quantity,price", count="true")
    assert entry["count"] == 6 and entry["sum"] == {"quantity": 66}
    assert entry["avg"]["quantity"] == pytest.approx(13.2) and entry["avg"]["price"] == pytest.approx(2.85)
    (entry,) = get_stats(
        bob, min_fields="price,bought_at", max_fields="price,bought_at", count_distinct_fields="name,shop.city"
    )
    assert entry == {
        "count_distinct": {"name": 3, "shop.city": 2},
        "min": {"price": 0.25, "bought_at": "2025-12-31 12:00:00"},
        "max": {"price": 9, "bought_at": "2026-05-01 00:00:00"},
    }


def test_aggregates_without_records_are_null(shops_with_parts: Any, bob: User):
    assert get_stats(bob, sum_fields="quantity", min_fields="price", query="name=none") == [
        {"sum": {"quantity": None}, "min": {"price": None}}
    ]
    assert get_stats(bob, count="1", group_by="state", query="name=none") == []


def test_groups_are_sorted_by_key_with_empty_keys_last(shops_with_parts: Any, bob: User):
    assert get_stats(bob, count="true", group_by="state", sum_fields="quantity") == [
        {"group": {"state": "1"}, "count": 3, "sum": {"quantity": 35}},
        {"group": {"state": "2"}, "count": 2, "sum": {"quantity": 30}},
        {"group": {"state": None}, "count": 1, "sum": {"quantity": 1}},
    ]


def test_groups_of_texts_ignore_case_like_queries(shops_with_parts: Any, bob: User):
    counts = {
        (entry["group"]["name"] or "").lower(): entry["count"] for entry in get_stats(bob, count="1", group_by="name")
    }
    assert list(counts.items()) == [("bolt", 2), ("cap", 1), ("nut", 2), ("", 1)]


def test_repeated_group_counts_once(shops_with_parts: dict[str, str], bob: User):
    response = api(bob).get("/rest/v1/stats/part?sysparm_count=true&sysparm_group_by=state,state")
    assert response.content.count(b'"state"') == len(data_of(response)) > 1


def test_groups_can_follow_references(shops_with_parts: dict[str, str], bob: User):
    assert get_stats(bob, count="true", group_by="shop.city,shop") == [
        {"group": {"shop.city": "Oslo", "shop": shops_with_parts["North"]}, "count": 3},
        {"group": {"shop.city": "Rome", "shop": shops_with_parts["South"]}, "count": 2},
        {"group": {"shop.city": None, "shop": None}, "count": 1},
    ]


@pytest.mark.parametrize(
    ("period", "first_days"),
    [("day", ["2025-12-31", "2026-01-31", "2026-02-01", "2026-02-15", "2026-05-01", None]),
     ("week", ["2025-12-29", "2026-01-26", "2026-02-09", "2026-04-27", None]),
     ("month", ["2025-12-01", "2026-01-01", "2026-02-01", "2026-05-01", None]),
     ("quarter", ["2025-10-01", "2026-01-01", "2026-04-01", None]),
     ("year", ["2025-01-01", "2026-01-01", None])],
)  # fmt: skip
def test_periods_are_named_by_their_first_day(shops_with_parts: Any, bob: User, period: str, first_days: list[Any]):
    key = f"bought_at:{period}"
    assert [entry["group"][key] for entry in get_stats(bob, count="true", group_by=key)] == first_days


def test_display_values_of_groups(shops_with_parts: dict[str, str], bob: User):
    groups = [entry["group"] for entry in get_stats(bob, count="true", group_by="state,shop", display_value="all")]
    assert groups[0] == {
        "state": {"value": "1", "display_value": "New"},
        "shop": {"value": shops_with_parts["North"], "display_value": "North"},
    }
    groups = [entry["group"] for entry in get_stats(bob, count="true", group_by="state,shop", display_value="1")]
    assert groups[0] == {"state": "New", "shop": "North"} and groups[-1]["state"] is None


def test_having_filters_groups(shops_with_parts: Any, bob: User):
    def get_states(having: str) -> list[Any]:
        return [entry["group"]["state"] for entry in get_stats(bob, count="true", group_by="state", having=having)]

    assert get_states("count>1") == ["1", "2"]
    assert get_states("count>1^sum(quantity)>=35") == ["1"]
    assert get_states("count=1^ORsum(quantity)=30") == ["2", None]
    assert get_states("avg(price)<1") == ["1"]
    assert get_states("count_distinct(shop)!=1") == []


def test_order_and_limit(shops_with_parts: Any, bob: User):
    def get_states(**params: Any) -> list[Any]:
        return [entry["group"]["state"] for entry in get_stats(bob, count="true", group_by="state", **params)]

    assert get_states(order_by="-count") == ["1", "2", None]
    assert get_states(order_by="sum(quantity)") == [None, "2", "1"]
    assert get_states(order_by="-state") == ["2", "1", None]
    assert get_states(order_by="-count", limit=1) == ["1"]


@pytest.mark.parametrize(
    ("params", "parameter_name"),
    [
        ({}, "sysparm_count"),
        ({"count": "maybe"}, "sysparm_count"),
        ({"sum_fields": "name"}, "sysparm_sum_fields"),
        ({"min_fields": "state"}, "sysparm_min_fields"),
        ({"count_distinct_fields": "data"}, "sysparm_count_distinct_fields"),
        ({"count": "1", "group_by": "data"}, "sysparm_group_by"),
        ({"count": "1", "group_by": "name:day"}, "sysparm_group_by"),
        ({"count": "1", "group_by": "bought_at:hour"}, "sysparm_group_by"),
        ({"count": "1", "group_by": "a,b,c,d"}, "sysparm_group_by"),
        ({"count": "1", "having": "count>many"}, "sysparm_having"),
        ({"count": "1", "having": "count>1^"}, "sysparm_having"),
        ({"count": "1", "group_by": "name", "having": "count>0^ORmin(bought_at)>5"}, "sysparm_having"),
        ({"count": "1", "having": "^".join(["count>1"] * 21)}, "sysparm_having"),
        ({"count": "1", "order_by": "name"}, "sysparm_order_by"),
        ({"count": "1", "limit": "0"}, "sysparm_limit"),
        ({"sum_fields": ",".join(["quantity"] * 21)}, "sysparm_sum_fields"),
    ],
)
def test_invalid_parameters_are_refused(part: Table, bob: User, params: dict[str, Any], parameter_name: str):
    open_table("part")
    assert error_of(api(bob).get(PATH, **params)) == (400, "invalid_parameter", parameter_name)


@pytest.mark.parametrize(
    "params",
    [{"sum_fields": "{}"}, {"count": "1", "group_by": "{}"}, {"count": "1", "having": "sum({})>1"},
     {"count": "1", "order_by": "-max({})"}, {"count": "1", "query": "{}>1"}],
)  # fmt: skip
def test_hidden_column_is_refused_like_a_missing_one(part: Table, bob: User, params: dict[str, str]):
    open_table("part")
    rule("read", "part", "price", roles=["itil"])
    contents = []
    for name in ("price", "prize"):
        response = api(bob).get(PATH, **{key: template.format(name) for key, template in params.items()})
        status, code, _ = error_of(response)
        assert (status, code) == (400, "unknown_field")
        contents.append(response.content.replace(name.encode(), b"NAME"))
    assert contents[0] == contents[1]


def test_hidden_records_are_not_counted(part: Table, bob: User):
    rule("read", "part", condition="quantity<5")
    for quantity in (1, 2, 9):
        record("part", quantity=quantity)
    assert get_stats(bob, count="true", max_fields="quantity") == [{"count": 2, "max": {"quantity": 2}}]


def test_hidden_values_are_excluded_from_aggregates(shops_with_parts: Any, bob: User):
    rule("read", "part", "price", condition="state=1")
    assert get_stats(bob, count="true", max_fields="price", count_distinct_fields="price") == [
        {"count": 6, "count_distinct": {"price": 3}, "max": {"price": 1.5}}
    ]


@pytest.mark.parametrize(
    "params", [{"group_by": "price"}, {"group_by": "name", "having": "max(price)>0"}, {"order_by": "sum(price)"}]
)
def test_rows_whose_group_or_order_is_hidden_are_excluded(shops_with_parts: Any, bob: User, params: dict[str, str]):
    rule("read", "part", "price", condition="state=1")
    entries = get_stats(bob, count="true", sum_fields="quantity", **params)
    assert sum(entry["count"] for entry in entries) == 3
    assert sum(entry["sum"]["quantity"] for entry in entries) == 35


def test_rows_that_refer_to_a_hidden_record_are_excluded_from_groups(part: Table, bob: User):
    open_table("part")
    rule("read", "shop", condition="city!=Rome")
    shops = [record("shop", name=city, city=city) for city in ("Oslo", "Rome")]
    for shop in (*shops, None):
        record("part", shop=shop)
    assert get_stats(bob, count="true", group_by="shop.city") == [
        {"group": {"shop.city": "Oslo"}, "count": 1}, {"group": {"shop.city": None}, "count": 1}
    ]  # fmt: skip
    assert len(get_stats(bob, count="true", group_by="shop")) == 3


def test_unknown_table_is_not_found(bob: User):
    assert error_of(api(bob).get("/rest/v1/stats/none", count="1")) == (404, "table_not_found", None)
