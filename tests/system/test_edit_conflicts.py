"""Two users edit the same record in the administration."""

from collections.abc import Callable
from typing import Any

import lxml.html
import pytest
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from accounts.authentication import access_keys
from accounts.models import AccessKey, Company, Group, Role, User, UserRole
from system.admin_site.edit_conflicts import EditConflictMixin
from system.models import Property
from system.records.record import Record
from tableapi.models import Table, Webhook

pytestmark = pytest.mark.django_db


def page_text(response: Any) -> str:
    return response.content.decode() if response.status_code == 200 else ""


def form_values(page: str, record: Record) -> dict[str, str]:
    """The form data that a browser sends."""
    forms = lxml.html.fromstring(page).forms
    (form,) = (element for element in forms if element.get("id") == f"{record._meta.model_name}_form")
    return {name: value.lstrip("\n") for name, value in form.form_values() if not name.startswith("_")}


class EditWindow:
    """An opened form page and the values of its form."""

    def __init__(self, browser: Client, record: Record) -> None:
        self.browser = browser
        self.url = reverse(f"admin:{record._meta.app_label}_{record._meta.model_name}_change", args=[record.pk])
        self.values = form_values(page_text(browser.get(self.url)), record)

    def save(self, **changes: str) -> Any:
        """Submits the form with these changes; an empty value clears a checkbox."""
        values = {**self.values, **changes}
        return self.browser.post(
            self.url, {name: value for name, value in values.items() if value or name not in changes}
        )


def make_key() -> AccessKey:
    access_keys.create_key(User.objects.get(login="bob"), "script", expires_at=None)
    return AccessKey.objects.get()


def make_webhook() -> Webhook:
    webhook = Webhook(
        name="Tasks",
        url="https://receiver.example.com/",
        table=Table.objects.get(name="task"),
        user=User.objects.get(login="alice"),
        operations=Webhook.Operation.values,
        columns=["number"],
    )
    webhook.generate_secret()
    webhook.save()
    return webhook


# By page: a record, the change in the first window, and the change in the second; "" clears a checkbox.
PAGES: dict[str, tuple[Callable[[], Record], dict[str, str], dict[str, str]]] = {
    "user": (lambda: User.objects.get(login="bob"), {"active": ""}, {"phone": "12"}),
    "group": (lambda: Group.objects.create(name="Desk"), {"active": ""}, {"name": "Help desk"}),
    "role": (lambda: Role.objects.create(name="clerk"), {"description": "Writes"}, {"name": "writer"}),
    "company": (lambda: Company.objects.create(name="Acme"), {"name": "Acme Inc"}, {"name": "Acme Ltd"}),
    "accesskey": (make_key, {"name": "Old"}, {"name": "New"}),
    "webhook": (make_webhook, {"name": "Old"}, {"name": "New"}),
    "property": (lambda: Property.objects.get(name="svc.welcome_page.url"), {"value": "/account/"}, {"value": "/"}),
}


def test_every_editable_page_is_tested():
    pages = {
        model._meta.model_name
        for model, model_admin in admin.site._registry.items()
        if isinstance(model_admin, EditConflictMixin) and model_admin.checks_edit_conflicts
    }
    assert pages == PAGES.keys()


@pytest.mark.parametrize("page", PAGES)
def test_second_save_does_not_overwrite_the_first(as_alice: Client, bob: User, page: str):
    make_record, first_change, second_change = PAGES[page]
    record = make_record()
    first_window, second_window = EditWindow(as_alice, record), EditWindow(as_alice, record)
    assert first_window.save(**first_change).status_code == 302
    stored_payload = record.refreshed().payload()

    refusal = second_window.save(**second_change)

    assert "alice changed this record at" in page_text(refusal)
    assert record.refreshed().payload() == stored_payload
    shown_values = form_values(page_text(refusal), record)
    assert all(shown_values.get(name, "") == value for name, value in second_change.items()), (
        "the form keeps the entered values"
    )
    # Submitting the same page again is refused too; a reloaded page can be saved.
    assert "alice changed this record at" in page_text(second_window.save(**second_change))
    assert EditWindow(as_alice, record).save(**second_change).status_code == 302
    assert record.refreshed().sys_version > stored_payload.get("sys_version", 0)


def test_concurrent_role_grant_is_a_conflict(as_alice: Client, bob: User):
    window = EditWindow(as_alice, bob)
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"), source=UserRole.PROVIDER)
    assert "The system changed this record at" in page_text(window.save(phone="12"))


def test_concurrent_sign_in_is_not_a_conflict(as_alice: Client, bob: User):
    window = EditWindow(as_alice, bob)
    Client().force_login(bob)  # records the time of the sign-in
    assert bob.refreshed().last_login is not None
    assert window.save(phone="12").status_code == 302
    assert bob.refreshed().phone == "12"


def test_invalid_form_does_not_update_the_seen_version(as_alice: Client, bob: User):
    window, other_window = EditWindow(as_alice, bob), EditWindow(as_alice, bob)
    assert other_window.save(last_name="Kim").status_code == 302
    values = form_values(page_text(window.save(login="", email="nothing")), bob)
    assert values["seen_change"] == window.values["seen_change"] and values["email"] == "nothing"
