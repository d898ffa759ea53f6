"""Saved lists: private or shared with roles, offered to those who could use them, changed by their owner."""

from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts.models import Role, User, UserRole
from tableapi.database import catalogue_loader
from tableapi.read.context import Caller
from tests.support.users import make_user, signed_in_client
from tests.tableapi.world import field, grant, open_table, record, role, rule, table
from workspace.lists.saved_lists import saved_lists_for
from workspace.models import SavedList

pytestmark = pytest.mark.django_db

QUERY = urlencode({"sysparm_query": "color=red^ORDERBYname", "columns": "name,color"})


@pytest.fixture(autouse=True)
def device_table(db: Any) -> None:
    table("device")
    for name in ("name", "color", "price"):
        field("device", name)
    open_table("device")
    rule("read", "device", "price", roles=["auditor"])
    record("device", name="Lamp", color="red")


@pytest.fixture
def dana(db: Any) -> User:
    return grant(make_user("dana"), "helper")


@pytest.fixture
def as_dana(dana: User) -> Client:
    return signed_in_client(dana)


def save(client: Client, name: str, query: str = QUERY, **values: Any) -> Any:
    return client.post(f"/tables/device/saved/?{query}", {"name": name, **values})


def role_id(name: str) -> str:
    return str(Role.objects.get(name=name).pk)


def offered(user: User) -> list[str]:
    context = Caller.of(User.objects.get(pk=user.pk)).context(catalogue_loader.reload_if_changed())
    return [item.saved.name for item in saved_lists_for(context)]


def test_list_is_saved_with_its_query_and_columns_and_offered_in_the_menu(as_dana: Client):
    response = save(as_dana, "Red ones")
    assert response.status_code == 302 and response["Location"].startswith(f"/tables/device/?{QUERY}&saved=")
    changed = as_dana.get(response["Location"].replace(QUERY, "sysparm_query=ORDERBYname")).content.decode()
    assert 'Red ones <span class="muted">(changed)</span>' in changed
    text = as_dana.get(response["Location"]).content.decode()
    assert " Red ones</h1>" in text and 'aria-current="page">Red ones</a>' in text
    assert 'data-path="color"' in text and 'data-path="price"' not in text


def test_private_list_is_offered_to_its_owner_only(as_dana: Client, dana: User, alice: User, bob: User):
    save(as_dana, "Mine")
    assert (offered(dana), offered(alice), offered(bob)) == (["Mine"], [], [])


def test_shared_list_is_offered_to_those_with_the_role_and_to_administrators(
    as_dana: Client, dana: User, alice: User, bob: User
):
    save(as_dana, "Ours", roles=[role_id("helper")])
    carol = grant(make_user("carol"), "helper")
    assert (offered(dana), offered(carol), offered(alice), offered(bob)) == (["Ours"], ["Ours"], ["Ours"], [])


def test_role_that_contains_the_role_counts(as_dana: Client, dana: User):
    role("chief", contains=["helper"])
    chief = grant(make_user("eve"), "chief")
    save(as_dana, "Ours", roles=[role_id("helper")])
    assert offered(chief) == ["Ours"]
    save(signed_in_client(chief), "Of the chief", roles=[role_id("helper")])
    assert offered(dana) == ["Ours", "Of the chief"]


def test_list_can_be_shared_only_with_own_roles(as_dana: Client, as_alice: Client, bob: User):
    auditor = role_id("auditor")
    assert save(as_dana, "x", roles=[auditor]).status_code == 422
    assert "auditor" not in as_dana.get("/tables/device/saved/").content.decode()
    assert save(as_alice, "x", roles=[auditor]).status_code == 302  # administrators have every role
    assert offered(grant(bob, "auditor")) == ["x"]


def test_list_is_no_longer_shared_when_its_owner_loses_the_role(as_dana: Client, dana: User):
    save(as_dana, "Ours", roles=[role_id("helper")])
    carol = grant(make_user("carol"), "helper")
    UserRole.objects.filter(user=dana).delete()
    assert (offered(carol), offered(dana)) == ([], ["Ours"])


@pytest.mark.parametrize("query", ["sysparm_query=price%3E1", "columns=name,price", "sysparm_query=ORDERBYprice"])
def test_list_with_a_hidden_column_is_not_offered(dana: User, query: str):
    carol = grant(make_user("carol"), "helper", "auditor")
    assert save(signed_in_client(carol), "Prices", query, roles=[role_id("helper")]).status_code == 302
    assert (offered(carol), offered(dana)) == (["Prices"], [])
    assert "Prices" not in signed_in_client(dana).get("/tables/device/").content.decode()


def test_list_of_a_hidden_or_deleted_table_is_not_offered(as_dana: Client, dana: User):
    save(as_dana, "Ours")
    SavedList.objects.create(user=dana, table_key="gone", name="Gone")
    table("vault")
    rule("read", "vault", roles=["auditor"])
    key = catalogue_loader.reload_if_changed().tables["vault"].id
    SavedList.objects.create(user=dana, table_key=key, name="Vault")
    assert offered(dana) == ["Ours"]


def test_list_runs_with_the_rights_of_the_person(as_dana: Client, dana: User):
    table("case")
    field("case", "name", is_display=True)
    rule("read", "case", condition="nameSTARTSWITHopen")
    record("case", name="hush")
    record("case", name="open 1")
    response = signed_in_client(make_user("root", "admin")).post(
        "/tables/case/saved/", {"name": "All", "roles": [role_id("helper")]}
    )
    assert response.status_code == 302
    text = as_dana.get(response["Location"]).content.decode()
    assert "open 1" in text and "hush" not in text


def saved_url(name: str) -> str:
    return f"/tables/device/saved/{SavedList.objects.get(name=name).pk}/"


def test_owner_renames_changes_and_deletes_a_list(as_dana: Client, dana: User):
    save(as_dana, "Red ones")
    url = saved_url("Red ones")
    other = urlencode({"sysparm_query": "color=blue", "columns": "color"})
    assert "Replace its filter" in as_dana.get(f"{url}?{other}").content.decode()
    as_dana.post(f"{url}?{other}", {"name": "Still red"})
    saved = SavedList.objects.get(name="Still red")
    assert saved.query == "color=red^ORDERBYname" and saved.columns == ["name", "color"]
    as_dana.post(f"{url}?{other}", {"name": "Blue ones", "replace": "1"})
    saved = SavedList.objects.get(name="Blue ones")
    assert saved.query == "color=blue" and saved.columns == ["color"]
    as_dana.post(url, {"step": "delete"})
    assert not SavedList.objects.exists()


def test_others_cannot_change_a_list_and_administrators_delete_shared_ones(
    as_dana: Client, as_alice: Client, as_bob: Client
):
    save(as_dana, "Ours", roles=[role_id("helper")])
    save(as_dana, "Mine")
    missing = as_bob.get("/tables/device/saved/179000000000000000/")
    for client, name in ((as_bob, "Ours"), (as_bob, "Mine"), (as_alice, "Mine")):
        url = saved_url(name)
        assert client.get(url).status_code == client.post(url, {"step": "delete"}).status_code == 404
        assert client.get(url).content == missing.content
    assert as_alice.get(saved_url("Ours")).status_code == 200
    assert as_alice.post(saved_url("Ours"), {"name": "Taken"}).status_code == 404
    assert as_alice.post(saved_url("Ours"), {"step": "delete"}).status_code == 302
    assert [saved.name for saved in SavedList.objects.all()] == ["Mine"]


@pytest.mark.parametrize("name", ["", "  ", "x" * 101, "Red ones"])
def test_name_is_required_and_unique_for_a_person_and_table(as_dana: Client, as_bob: Client, name: str):
    save(as_dana, "Red ones")
    response = save(as_dana, name)
    assert response.status_code in (409, 422) and 'role="alert"' in response.content.decode()
    assert save(as_bob, "Red ones").status_code == 302


def test_invalid_query_cannot_be_saved(as_dana: Client):
    assert save(as_dana, "x", "sysparm_query=price%3D1").status_code == 422
    assert not SavedList.objects.exists()
