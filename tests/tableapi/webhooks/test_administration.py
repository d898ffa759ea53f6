"""The administration of webhooks: the form and its errors, the secret, the buttons and the delivery log."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from standardwebhooks import Webhook as Verifier

from accounts.models import User
from system.models import DeletionLogEntry
from tableapi.models import Rule, Table, Webhook, WebhookDelivery
from tests.support.users import signed_in_client
from tests.tableapi.webhooks.conftest import MakeWebhook
from tests.tableapi.webhooks.receiver import Receiver, refuse
from tests.tableapi.world import api, field, rule

pytestmark = pytest.mark.django_db(transaction=True)
ADD = "/admin/tableapi/webhook/add/"
LOG = "/admin/tableapi/webhookdelivery/"


@pytest.fixture
def values(receiver: Receiver, device: Table, bob: User) -> dict[str, Any]:
    return {
        "name": "Devices", "url": receiver.url, "table": device.pk, "user": bob.pk, "operations": ["create", "update"],
        "condition": "price>5", "columns": "", "active": "on",
    }  # fmt: skip


def secret_on(page: Any) -> str:
    match = re.search(r'id="new-key">(whsec_[^<]+)<', page.content.decode())
    assert match is not None
    return match.group(1)


def change_path(webhook: Webhook) -> str:
    return reverse("admin:tableapi_webhook_change", args=[webhook.pk])


def test_secret_is_shown_once_and_columns_are_fixed(
    as_alice: Client, values: dict[str, Any], device: Table, receiver: Receiver
):
    rule("read", "device", "price", roles=["itil"])
    page = as_alice.post(ADD, {**values, "condition": ""}, follow=True)
    secret, webhook = secret_on(page), Webhook.objects.get()
    assert "name" in webhook.columns and "price" not in webhook.columns
    assert secret not in as_alice.get(change_path(webhook)).content.decode()
    assert secret not in str(Webhook.objects.values()) and webhook.secret not in page.content.decode()

    as_alice.post(change_path(webhook), {"_test": "1"})
    (message,) = receiver.take()
    Verifier(secret).verify(message.content, message.headers)
    new_secret = secret_on(as_alice.post(change_path(webhook), {"_rotate": "1"}, follow=True))
    assert new_secret != secret
    history = as_alice.get(f"/admin/tableapi/webhook/{webhook.pk}/history/").content.decode()
    assert "The secret was rotated." in history and "gAAAA" not in history


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"url": "http://receiver.example.com:99999/"}, "a port from 1 to 65535"),
        ({"url": "ftp://receiver.example.com/"}, "The URL must begin with"),
        ({"url": "https://a:b@receiver.example.com/"}, "must not contain a user name"),
        ({"url": "https://10.0.0.8/"}, "private addresses are refused"),
        ({"condition": "nosuch=1"}, "There is no column named &quot;nosuch&quot;."),
        ({"condition": "price>>"}, "The query is invalid"),
        ({"condition": "price>abc"}, "The query is invalid"),
        ({"condition": "hidden=1"}, "There is no column named &quot;hidden&quot;."),
        ({"columns": "name,nosuch"}, "The user can read no column with the name nosuch."),
        ({"columns": "name,price,"}, "Item 3 in the array did not validate: This field is required."),
        ({"operations": []}, "This field is required."),
        ({"operations": ["drop"]}, "Select a valid choice."),
        ({"user": ""}, "This field is required."),
        ({"table": "nosuch"}, "Select a valid choice."),
        ({"name": "a\x00"}, "Null characters are not allowed."),
    ],
)
def test_invalid_input_is_explained(as_alice: Client, values: dict[str, Any], change: dict[str, Any], error: str):
    field("device", "hidden")
    rule("read", "device", "hidden", roles=["itil"])
    page = as_alice.post(ADD, {**values, **change})
    assert page.status_code == 200 and error in page.content.decode()
    assert not Webhook.objects.exists()


def test_unreadable_table_is_refused(as_alice: Client, values: dict[str, Any], device: Table):
    Rule.objects.filter(table=device, operation="read").delete()
    assert "This user may not read the table" in as_alice.post(ADD, values).content.decode()
    assert not Webhook.objects.exists()


def test_failed_test_is_explained_and_logged(as_alice: Client, make_webhook: MakeWebhook, receiver: Receiver):
    receiver.answer = refuse
    page = as_alice.post(change_path(make_webhook()), {"_test": "1"}, follow=True)
    assert "The test was not delivered. The receiver responded with 500." in page.content.decode()
    (row,) = WebhookDelivery.objects.all()
    log = as_alice.get(LOG).content.decode()
    assert "failed" in log and "500" in log
    assert "out of order" in as_alice.get(f"{LOG}{row.pk}/change/").content.decode()


def test_parked_deliveries_are_replayed_or_skipped(as_alice: Client, make_webhook: MakeWebhook):
    webhook = make_webhook()
    rows = [
        WebhookDelivery.objects.create(webhook=webhook, record_id=name, operation="update", state="parked")
        for name in ("a", "a", "b", "c")
    ]
    post = {"action": "replay", "_selected_action": [rows[1].pk]}
    assert "will be sent again: 2" in as_alice.post(LOG, post, follow=True).content.decode()
    as_alice.post(LOG, {"action": "skip", "_selected_action": [rows[0].pk, rows[2].pk]})
    assert [row.state for row in WebhookDelivery.objects.order_by("id")] == ["waiting", "waiting", "skipped", "parked"]
    page = as_alice.get(f"{LOG}?state__exact=parked&webhook__sys_id__exact={webhook.pk}").content.decode()
    assert page.count("_selected_action") == 1


def test_only_administrators_see_webhooks(make_webhook: MakeWebhook, sonja: User, bob: User):
    webhook = make_webhook()
    for user in (sonja, bob):
        for path in (ADD, LOG, change_path(webhook), "/admin/tableapi/webhook/"):
            assert signed_in_client(user).get(path).status_code in (302, 403)
        assert signed_in_client(user).post(change_path(webhook), {"_rotate": "1"}).status_code in (302, 403)
    assert Webhook.objects.get().old_secret == ""
    assert api(bob).get("sys_webhook").status_code == 404


def test_deleted_webhook_takes_its_deliveries_with_it(as_alice: Client, make_webhook: MakeWebhook, bob: User):
    webhook = make_webhook()
    WebhookDelivery.objects.create(webhook=webhook, operation="update")
    page = as_alice.post(f"/admin/accounts/user/{bob.pk}/delete/", {"post": "yes"}, follow=True)
    assert page.status_code == 200 and User.objects.filter(pk=bob.pk).exists()
    assert as_alice.post(f"/admin/tableapi/webhook/{webhook.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not WebhookDelivery.objects.exists()
    (entry,) = DeletionLogEntry.objects.filter(table="sys_webhook")
    assert entry.payload["name"] == "Devices" and "secret" not in entry.payload


def test_deleted_table_takes_its_webhooks_with_it(make_webhook: MakeWebhook, device: Table):
    make_webhook()
    device.delete()
    assert not Webhook.objects.exists()


def test_dashboard_tells_of_parked_deliveries(as_alice: Client, make_webhook: MakeWebhook):
    def find_tiles() -> list[Any]:
        return [tile for tile in as_alice.get("/admin/").context["tiles"] if tile.title == "Webhooks"]

    assert find_tiles() == []
    webhook = make_webhook()
    for state in ("delivered", "parked"):
        WebhookDelivery.objects.create(webhook=webhook, operation="update", record_id=state, state=state)
    (tile,) = find_tiles()
    assert tile.needs_attention and tile.description == "active webhook, 1 parked delivery."
    listed = as_alice.get(tile.url).context["cl"].queryset
    assert [delivery.record_id for delivery in listed] == ["parked"]
