"""The notification settings on the account page."""

import pytest
from django.test import Client

from accounts.models import NotificationChoice, User

pytestmark = pytest.mark.django_db


def test_all_notifications_are_enabled_by_default(as_bob: Client):
    content = as_bob.get("/account/").content.decode()

    assert content.count('name="reasons"') == 4 == content.count('name="reasons" value="') and "by_email" in content
    assert content.count("checked") == 5


def test_notification_choice_is_saved(as_bob: Client, bob: User):
    response = as_bob.post("/account/notifications/", {"reasons": ["mentioned"]}, follow=True)

    assert "Notification settings saved." in response.content.decode()
    choice = NotificationChoice.objects.get(user=bob)
    assert (choice.reasons, choice.by_email) == (["mentioned"], False)
    assert response.content.decode().count("checked") == 1


def test_unknown_reason_is_refused(as_bob: Client, bob: User):
    response = as_bob.post("/account/notifications/", {"reasons": ["other"]})

    assert response.status_code == 400 and not NotificationChoice.objects.exists()
