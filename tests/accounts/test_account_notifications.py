"""The notification settings on the account page."""

import pytest
from django.test import Client

from accounts.models import NotificationChoice, User

pytestmark = pytest.mark.django_db


REASONS = ("assigned", "mentioned", "commented", "changed")


def test_all_notifications_are_enabled_by_default(as_bob: Client):
    content = as_bob.get("/account/").content.decode()

    assert content.count('<option value="email" selected>') == 4 == content.count('<option value="off">')


def test_channel_of_each_reason_is_saved(as_bob: Client, bob: User):
    channels = {"assigned": "email", "mentioned": "list", "commented": "off", "changed": "off"}
    response = as_bob.post("/account/notifications/", channels, follow=True)

    assert "Notification settings saved." in response.content.decode()
    choice = NotificationChoice.objects.get(user=bob)
    assert (choice.reasons, choice.email_reasons) == (["assigned", "mentioned"], ["assigned"])
    assert response.content.decode().count('<option value="off" selected>') == 2


@pytest.mark.parametrize("channel", ["", "other"])
def test_unknown_channel_is_refused(as_bob: Client, channel: str):
    response = as_bob.post("/account/notifications/", {**dict.fromkeys(REASONS, "list"), "changed": channel})

    assert response.status_code == 400 and not NotificationChoice.objects.exists()
    assert response.content.decode().count('<option value="list" selected>') == 3
