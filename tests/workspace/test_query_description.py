"""A query in words uses only the labels that the caller can see."""

from typing import Any

import pytest

from accounts.models import User
from system.encoded_query import parse
from tableapi.catalogue.definitions import Table
from tableapi.database import catalogue_loader
from tableapi.read.context import Caller, ReadContext
from tests.system.encoded_query.queries import CONDITION_TEXTS
from tests.tableapi.world import field, record, rule, table
from workspace.lists.query_description import filter_context

pytestmark = pytest.mark.django_db


@pytest.fixture
def laptop_table(db: Any) -> dict[str, str]:
    """Two makers, of which everybody can read one."""
    table("maker")
    field("maker", "name", is_display=True)
    rule("read", "maker", condition="name!=Hush")
    table("laptop")
    field("laptop", "state", choices={"1": "New", "2": "In progress"})
    field("laptop", "maker", target="maker")
    field("laptop", "owner", target="user")
    field("laptop", "other_owner", target="user", label="Other owner")
    field("laptop", "due", "datetime", label="Due date")
    field("laptop", "rented", "boolean")
    field("laptop", "price", "integer")
    field("laptop", "name", is_indexed=True)
    field("laptop", "secret_name", label="Secret label")
    rule("read", "laptop")
    rule("read", "laptop", "secret_name", roles=["auditor"])
    return {"lux": record("maker", name="Lux"), "hush": record("maker", name="Hush")}


def in_words(user: User, query: str) -> str:
    context = Caller.of(user).context(catalogue_loader.cached_catalogue())
    parts = filter_context(context, context.view.open_table("laptop"), query)["filter_parts"]
    return " ".join(f"{part['joiner']} {part['text']}".strip() for part in parts)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", ""),
        ("stateIN1,2^ORDERBYname", "State is New or In progress"),
        ("stateNOT IN1,2,7", "State is none of New, In progress, 7"),
        ("due<javascript:gs.beginningOfToday()", "Due date is before the start of today"),
        ("due<2024-05-19", "Due date is before 19 May 2024"),
        ("due>=2024-05-19 15:30:00", "Due date is at or after 19 May 2024, 15:30"),
        ("dueONLast week@javascript:gs.beginningOfLastWeek()@javascript:gs.endOfLastWeek()", "Due date is last week"),
        ("dueNOTON@2024-05-01@2024-05-31", "Due date is not from 1 May 2024 to 31 May 2024"),
        ("dueRELATIVELT@day@ago@7", "Due date is more than 7 days ago"),
        ("dueMONTH_IS5^dueDAY_OF_WEEK_IS7", "Due date is in month 5 and Due date is on day of the week 7"),
        ("dueRELATIVEGE@hour@ahead@1", "Due date is at or after 1 hour from now"),
        ("dueMORETHANsys_created_at@day@after@2", "Due date is more than 2 days after Created"),
        ("ownerDYNAMICme", "Owner is me"),
        ("owner=javascript:gs.getUserID()", "Owner is me"),
        ("ownerSAMEASother_owner", "Owner is the same as Other owner"),
        ("rented=true^price>5", "Rented is Yes and Price is greater than 5"),
        ("priceBETWEEN1@5", "Price is between 1 and 5"),
        ("priceIN1,2,3,4,5,6,7,8", "Price is 1 or 2 or 3 or 4 or 5 or 6 or 2 more"),
        ("owner.login=x", "Owner › Login is x"),
        ("owner=", "Owner is empty"),
        ("sys_idAREprinter fire", "Record contains the words printer fire"),
        ("price=1^ORprice=2^rented=0", "Price is 1 or Price is 2 and Rented is No"),
        ("price=1^rented=1^NQprice=2", "Price is 1 and Rented is Yes or Price is 2"),
        ("price=1^ORprice=2^rented=1^NQprice=3", "(Price is 1 or Price is 2) and Rented is Yes or Price is 3"),
        ("(price=1^NQprice=2)^rented=1", "(Price is 1 or Price is 2) and Rented is Yes"),
    ],
)
def test_query_is_said_in_words(bob: User, laptop_table: Any, query: str, words: str):
    assert in_words(bob, query) == words


def test_part_can_be_removed(bob: User, laptop_table: Any):
    assert rests(bob, "price=1^ORprice=2^rented=1^ORDERBYname") == [
        "rented=1^ORDERBYname",
        "price=1^ORprice=2^ORDERBYname",
    ]
    assert rests(bob, "price=1^NQrented=1") == ["rented=1", "price=1"]


def rests(user: User, query: str) -> list[str]:
    return [part["rest"] for part in filter_context(*open_laptop(user), query)["filter_parts"]]


def test_only_readable_records_have_labels(bob: User, alice: User, laptop_table: dict[str, str]):
    lux, hush = laptop_table["lux"], laptop_table["hush"]
    assert in_words(bob, f"makerIN{lux},{hush},12345") == f"Maker is Lux or {hush} or 12345"
    assert in_words(alice, f"maker={hush}") == "Maker is Hush"
    data = filter_context(*open_laptop(bob), f"maker={lux}^ORmaker={hush}")["filter_data"]
    assert data["labels"] == {"maker": {lux: "Lux"}}


def test_hidden_column_is_named_as_in_the_query(bob: User, laptop_table: Any):
    assert in_words(bob, "secret_name=1^no_such_name=1") == "secret_name is 1 and no_such_name is 1"


def test_every_valid_query_can_be_said(bob: User, laptop_table: Any):
    for text in [*CONDITION_TEXTS, "due=0001-01-01 00:00:00", "due>9999-12-31 23:59:59", "due=tomorrow at noon"]:
        if text not in ("(a=1", "b=2)"):
            assert in_words(bob, text)
    ids = ",".join(map(str, range(1_000)))
    assert "more" in in_words(bob, f"makerIN{ids}^ORmakerIN{ids.replace('1', 'a')}")


def test_invalid_query_has_no_tree(bob: User, laptop_table: Any):
    context = filter_context(*open_laptop(bob), "a=1^^")
    assert context["filter_data"]["tree"] is None and context["filter_parts"] == []


def open_laptop(user: User) -> tuple[ReadContext, Table]:
    context = Caller.of(user).context(catalogue_loader.cached_catalogue())
    return context, context.view.open_table("laptop")


def test_parts_are_valid_queries(bob: User, laptop_table: Any):
    for rest in rests(bob, "(price=1^NQprice=2)^rented=1^ORname={x^}}}^ORDERBYname"):
        parse(rest)
