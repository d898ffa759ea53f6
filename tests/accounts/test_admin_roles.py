"""Roles in the administration."""

from typing import Any

import pytest
from django.test import Client

from accounts.admin.roles import ADMIN_ROLE_HELP
from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User, UserRole
from accounts.roles import SHIPPED_ROLES


def role_page_path(role: Role | None, page: str = "change") -> str:
    return f"/admin/accounts/role/{role.pk}/{page}/" if role else "/admin/accounts/role/add/"


def submit_role(browser: Client, role: Role | None, name: str, *contains: str, description: str = "") -> Any:
    return browser.post(role_page_path(role), {"name": name, "description": description, "contains": contains})


def form_errors(page: Any) -> str:
    assert page.status_code == 200, page.status_code
    return str(page.context["errors"])


def test_role_can_contain_others(as_alice: Client, alice: User):
    itil = Role.objects.get(name="itil")
    assert submit_role(as_alice, None, "desk", itil.pk).status_code == 302

    desk = Role.objects.get(name="desk")
    assert (desk.contains, desk.sys_created_by) == ([itil.pk], alice.pk)
    page = as_alice.get(role_page_path(desk)).content.decode()
    assert f'<option value="{itil.pk}" selected>' in page


def test_containment_loop_is_reported(as_alice: Client):
    outer = Role.objects.create(name="outer")
    inner = Role.objects.create(name="inner")
    assert submit_role(as_alice, outer, "outer", inner.pk).status_code == 302

    for role, contained_role in ((inner, outer), (inner, inner)):
        assert "A role cannot contain itself" in form_errors(submit_role(as_alice, role, "inner", contained_role.pk))
    assert inner.refreshed().contains == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "required"),
        ("itil", "already exists"),
        ("de\x07sk", "must not contain control"),
        ("x" * 101, "at most 100"),
    ],
)
def test_invalid_name_is_reported(as_alice: Client, name: str, message: str):
    assert message in form_errors(submit_role(as_alice, None, name))
    assert Role.objects.count() == len(SHIPPED_ROLES)


@pytest.mark.parametrize("contained_id", ["1", "x", "", "9" * 50, "' OR 1=1"])
def test_unknown_contained_role_is_reported(as_alice: Client, contained_id: str):
    assert "Select a valid choice" in form_errors(submit_role(as_alice, None, "desk", contained_id))


@pytest.mark.parametrize("name", SHIPPED_ROLES)
def test_shipped_role_cannot_be_deleted(as_alice: Client, name: str):
    role = Role.objects.get(name=name)

    assert as_alice.post(role_page_path(role, "delete"), {"post": "yes"}).status_code == 403
    assert b"deletelink" not in as_alice.get(role_page_path(role)).content
    form = {"action": "delete_selected", "_selected_action": [role.pk], "post": "yes"}
    page = as_alice.post("/admin/accounts/role/", form)
    assert b"part of the product" in page.content
    assert Role.objects.filter(name=name).exists()


def test_shipped_role_in_a_selection_prevents_deletion(as_alice: Client):
    role_ids = [Role.objects.create(name="desk").pk, Role.objects.get(name="itil").pk]
    as_alice.post("/admin/accounts/role/", {"action": "delete_selected", "_selected_action": role_ids, "post": "yes"})

    assert Role.objects.filter(pk__in=role_ids).count() == 2


@pytest.mark.parametrize("name", SHIPPED_ROLES)
def test_shipped_role_can_be_described_but_not_renamed(as_alice: Client, name: str):
    role = Role.objects.get(name=name)
    assert submit_role(as_alice, role, "renamed", description="Ours").status_code == 302

    assert (role.refreshed().name, role.description) == (name, "Ours")


def test_custom_role_can_be_renamed_and_deleted(as_alice: Client):
    role = Role.objects.create(name="desk")
    assert submit_role(as_alice, role, "front desk").status_code == 302
    assert role.refreshed().name == "front desk"

    assert as_alice.post(role_page_path(role, "delete"), {"post": "yes"}).status_code == 302
    assert not Role.objects.filter(pk=role.pk).exists()


def test_deleting_every_role_of_a_key_from_the_list_deletes_the_key(as_alice: Client, alice: User):
    role_ids = [Role.objects.create(name=name).pk for name in ("one", "two")]
    access_keys.create_key(alice, "both", expires_at=None, scope=role_ids)
    as_alice.post("/admin/accounts/role/", {"action": "delete_selected", "_selected_action": role_ids, "post": "yes"})

    assert not Role.objects.filter(pk__in=role_ids).exists()
    assert not AccessKey.objects.exists(), "with an empty scope, it would have all roles"


def test_names_are_escaped(as_alice: Client):
    role = Role.objects.create(name="<script>alert(1)</script>", description="<script>alert(2)</script>")

    for path in (
        "/admin/accounts/role/",
        role_page_path(role),
        role_page_path(role, "delete"),
        role_page_path(role, "history"),
    ):
        content = as_alice.get(path).content
        assert b"<script>alert" not in content and b"alert(1)" in content, path


@pytest.mark.parametrize("name", ["Service Desk", "servicedesk", "service  desk"])
def test_role_with_a_similar_name_is_saved_with_a_warning(as_alice: Client, name: str):
    Role.objects.create(name="service desk")
    page = as_alice.get(submit_role(as_alice, None, name)["Location"]).content.decode()

    assert Role.objects.filter(name=name).exists()
    assert "Another role has a similar name: “service desk”" in page


def test_role_with_a_different_name_gets_no_warning(as_alice: Client):
    assert "has a similar name" not in as_alice.get(submit_role(as_alice, None, "desk")["Location"]).content.decode()


def test_page_explains_why_a_shipped_role_cannot_be_deleted(as_alice: Client):
    explanation = "cannot be renamed or deleted"

    assert explanation in as_alice.get(role_page_path(Role.objects.get(name="admin"))).content.decode()
    assert explanation not in as_alice.get(role_page_path(Role.objects.create(name="desk"))).content.decode()


def test_page_explains_that_admin_includes_every_role(as_alice: Client, as_bob: Client, bob: User):
    admin_role, itil_role = Role.objects.get(name="admin"), Role.objects.get(name="itil")
    assert ADMIN_ROLE_HELP in as_alice.get(f"/admin/accounts/role/{admin_role.pk}/change/").content.decode()
    assert ADMIN_ROLE_HELP not in as_alice.get(f"/admin/accounts/role/{itil_role.pk}/change/").content.decode()

    UserRole.objects.create(user=bob, role=itil_role)
    assert "admin includes all roles" in as_alice.get("/account/").content.decode()
    assert "includes all roles" not in as_bob.get("/account/").content.decode()
