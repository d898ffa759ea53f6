"""The welcome page may be changed manually while a connection is active, but this causes a warning."""

import pytest
from django.test import Client

from system import properties
from system.models import Property
from tests.sso.connections import make_connection, messages_of, welcome_page

pytestmark = pytest.mark.django_db


def put_property(browser: Client, value: str, name: str = properties.WELCOME_PAGE.name) -> str:
    row = Property.objects.get(name=name)
    return messages_of(browser.post(f"/admin/system/property/{row.pk}/change/", {"value": value}, follow=True))


def test_a_value_other_than_the_redirect_uri_causes_a_warning(as_alice: Client):
    setting = make_connection(active=True)
    message = put_property(as_alice, "/account/")
    assert "active connection “Example”" in message and f"{setting.redirect_uri}. Visitors to / no longer go" in message
    assert welcome_page() == "/account/"

    setting.save()
    assert welcome_page() == setting.redirect_uri, "as the warning states"
    assert "no longer go" in put_property(as_alice, "")
    assert "no longer go" not in put_property(as_alice, setting.redirect_uri)


def test_other_changes_cause_no_warning(as_alice: Client):
    setting = make_connection(active=True)
    assert "no longer go" not in put_property(as_alice, setting.redirect_uri), "no change"
    assert "no longer go" not in put_property(as_alice, "false", properties.CASE_SENSITIVE.name)
    setting.active = False
    setting.save()
    assert "no longer go" not in put_property(as_alice, "/account/")
