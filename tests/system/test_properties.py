"""System properties are typed and validated, and changes take effect immediately."""

import pytest
from django.core.exceptions import ValidationError
from django.test import Client

from system import properties
from system.models import Property
from system.property_definitions import DEFINITIONS

pytestmark = pytest.mark.django_db


def save_property(name: str, value: str) -> Property:
    row = Property.objects.get(name=name)
    row.value = value
    row.full_clean()
    row.save()
    return row


def test_every_property_definition_is_stored_with_its_description():
    rows = {row.name: (row.type, row.description, row.default_value) for row in Property.objects.all()}

    assert rows == {
        definition.name: (definition.type, definition.description, definition.default)
        for definition in DEFINITIONS.values()
    }


def test_empty_value_means_the_default():
    assert properties.get(properties.CASE_SENSITIVE) is True
    assert properties.get(properties.WELCOME_PAGE) == ""
    assert properties.get(properties.WYSIWYG_COLUMNS) == ()


def test_change_applies_immediately_in_this_process():
    assert properties.get(properties.CASE_SENSITIVE) is True
    save_property("svc.login.username.sensitivity.enabled", "false")

    assert properties.get(properties.CASE_SENSITIVE) is False


def test_change_by_another_process_applies_within_a_second(monkeypatch: pytest.MonkeyPatch):
    clock = [1000.0]
    monkeypatch.setattr("system.properties.time.monotonic", lambda: clock[0])
    assert properties.get(properties.CASE_SENSITIVE) is True
    Property.objects.filter(name="svc.login.username.sensitivity.enabled").update(value="false")
    clock[0] += 0.9
    assert properties.get(properties.CASE_SENSITIVE) is True
    clock[0] += 0.2

    assert properties.get(properties.CASE_SENSITIVE) is False


def test_values_are_read_once_a_second(django_assert_num_queries):
    with django_assert_num_queries(1):
        for _ in range(5):
            properties.get(properties.CASE_SENSITIVE)


@pytest.mark.parametrize("value", ["maybe", "2", "yes!"])
def test_boolean_is_validated(value: str):
    with pytest.raises(ValidationError):
        save_property("svc.login.username.sensitivity.enabled", value)


@pytest.mark.parametrize(
    "value", ["/start", "/sso/start/?x=1", "/höhe?a=%20b#c", "http://testserver/a", "http://localhost/b", ""]
)
def test_welcome_page_can_be_a_url_of_this_service(value: str):
    assert save_property("svc.welcome_page.url", value).value == value


@pytest.mark.parametrize(
    "value",
    ["https://evil.example.com/", "//evil.example", "\\\\evil", "javascript:alert(1)", "http:evil", "/\\evil", "\t//e"],
)  # fmt: skip
def test_welcome_page_of_another_site_is_refused(value: str):
    with pytest.raises(ValidationError):
        save_property("svc.welcome_page.url", value)


@pytest.mark.parametrize("value", ["/nope here", "/a\tb", "/a\u00a0b", "/a\u200bb", "http://testserver/a b"])
def test_welcome_page_must_be_a_url(value: str):
    with pytest.raises(ValidationError):
        save_property("svc.welcome_page.url", value)


def test_only_the_origin_of_the_base_url_is_allowed(settings):
    settings.BASE_URL = "https://service.example.com"

    assert save_property("svc.welcome_page.url", "https://service.example.com/x").value
    for foreign_url in ("http://service.example.com/x", "https://localhost/x", "https://service.example.com:8443/x"):
        with pytest.raises(ValidationError):
            save_property("svc.welcome_page.url", foreign_url)


def test_invalid_stored_value_means_the_default():
    Property.objects.filter(name="svc.login.username.sensitivity.enabled").update(value="nonsense")

    assert properties.get(properties.CASE_SENSITIVE) is True


def test_put_records_history(alice):
    from system.records import acting_user

    with acting_user.acting_as(alice.pk):
        properties.put(properties.WELCOME_PAGE, "/start")

    entry = Property.objects.get(name="svc.welcome_page.url").history.first()
    assert (entry.value, entry.history_user_id) == ("/start", alice.pk)


def test_admin_page_validates_values(as_alice: Client):
    row = Property.objects.get(name="svc.welcome_page.url")
    response = as_alice.post(f"/admin/system/property/{row.pk}/change/", {"value": "https://evil.example.com"})

    assert response.status_code == 200
    assert "a URL of this service" in response.content.decode()
    assert Property.objects.get(pk=row.pk).value == ""


def test_properties_cannot_be_added_or_deleted(as_alice: Client):
    row = Property.objects.first()
    assert row is not None

    assert as_alice.get("/admin/system/property/add/").status_code == 403
    assert as_alice.post(f"/admin/system/property/{row.pk}/delete/", {"post": "yes"}).status_code == 403
