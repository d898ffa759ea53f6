"""The condition builder offers what the caller could use in a query of the Table API, and nothing else."""

from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tests.support.users import signed_in_client
from tests.tableapi.world import api, data_of, field, grant, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def laptop_table(db: Any) -> None:
    table("maker")
    field("maker", "name", is_display=True)
    table("vault")
    field("vault", "code")
    rule("read", "maker")
    rule("read", "vault", roles=["auditor"])
    table("laptop")
    field("laptop", "state", choices={"2": "In progress", "1": "New"})
    field("laptop", "maker", target="maker")
    field("laptop", "vault", target="vault")
    field("laptop", "parent", target="laptop")
    field("laptop", "owners", "list", target="user")
    field("laptop", "due", "datetime", label="Due date")
    field("laptop", "about", "json")
    field("laptop", "pin", "secret")
    field("laptop", "level", choices={"s": "Secret choice"})
    rule("read", "laptop")
    rule("read", "laptop", "level", roles=["auditor"])


def fields_of(client: Client, path: str = "", table: str = "laptop") -> dict[str, Any]:
    response = client.get(f"/tables/{table}/fields/", {"path": path} if path else {})
    assert response.status_code == 200, response.content
    return {item["name"]: item for item in response.json()["fields"]}


def operators_of(client: Client, name: str, path: str = "") -> list[str]:
    body = client.get("/tables/laptop/fields/", {"path": path}).json()
    key = next(item["operators"] for item in body["fields"] if item["name"] == name)
    return [operator["name"] for operator in body["operators"][key]]


def test_columns_are_described(as_bob: Client):
    fields = fields_of(as_bob)
    assert fields["state"]["choices"] == [["2", "In progress"], ["1", "New"]] and fields["state"]["kind"] == "choice"
    assert fields["maker"]["optionsUrl"] == "/tables/maker/options/" and fields["maker"]["isWalkable"]
    assert fields["owners"]["reference"] == "user" and not fields["owners"]["isWalkable"]
    labels = [item["label"].casefold() for item in fields.values()]
    assert labels == sorted(labels) and "due date" in labels


def test_operators_fit_the_column(as_bob: Client):
    assert operators_of(as_bob, "about") == ["ISEMPTY", "ISNOTEMPTY", "ANYTHING", "NOTHING"]
    assert "RELATIVELT" in operators_of(as_bob, "due") and "LIKE" not in operators_of(as_bob, "due")
    assert "DYNAMIC" in operators_of(as_bob, "maker") and "HAS" in operators_of(as_bob, "owners")
    assert {"ARE", "INSTANCEOF"} <= set(operators_of(as_bob, "sys_id"))
    assert not {"ARE", "INSTANCEOF"} & set(operators_of(as_bob, "sys_id", "parent"))


def test_references_can_be_followed(as_bob: Client):
    assert set(fields_of(as_bob, "maker")) == set(fields_of(as_bob, table="maker"))
    deepest = ".".join(["parent"] * 5)
    assert not fields_of(as_bob, deepest)["parent"]["isWalkable"] and fields_of(as_bob, "parent.parent")
    assert as_bob.get("/tables/laptop/fields/", {"path": f"{deepest}.parent"}).status_code == 404


def test_hidden_columns_and_their_choices_are_not_offered(as_bob: Client, bob: User):
    content = as_bob.get("/tables/laptop/fields/").content.decode()
    assert "level" not in content and "Secret choice" not in content and '"pin"' not in content
    assert "level" in fields_of(signed_in_client(grant(bob, "auditor")))


def test_hidden_tables_are_not_offered(as_bob: Client, bob: User):
    """The column itself is visible through the API, too. Its records and columns are not."""
    vault = fields_of(as_bob)["vault"]
    assert (vault["reference"], vault["optionsUrl"], vault["isWalkable"]) == (None, None, False)
    as_auditor = signed_in_client(grant(bob, "auditor"))
    assert fields_of(as_auditor)["vault"]["isWalkable"] and "code" in fields_of(as_auditor, "vault")


def test_hidden_and_missing_are_the_same_404(as_bob: Client):
    def answer(url: str) -> tuple[int, bytes]:
        response = as_bob.get(url, headers={"Accept": "application/json"})
        return response.status_code, response.content

    hidden = answer("/tables/laptop/fields/?path=vault")
    assert hidden[0] == 404
    for path in f"nothing level state owners maker.nothing vault.code . maker. %00 {'a' * 300}".split():
        assert answer(f"/tables/laptop/fields/?path={path}") == hidden
    assert answer("/tables/vault/fields/") == answer("/tables/nothing/fields/")
    assert answer("/tables/vault/fields/")[0] == 404


def test_every_offered_column_can_be_used_in_the_api(as_bob: Client, bob: User):
    for path in ("", "maker", "parent.maker", "parent"):
        for name in fields_of(as_bob, path):
            data_of(api(bob).get("laptop", query=f"{path + '.' if path else ''}{name}ISEMPTY"))


def test_signed_out_visitor_is_sent_to_the_sign_in_page(client: Client):
    assert client.get("/tables/laptop/fields/").status_code == 302
