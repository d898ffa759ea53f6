"""The client secret on the form of a connection: kept, replaced, removed, never shown."""

from typing import Any

import pytest
from django.test import Client

from sso.models import OidcSetting
from tests.sso.connections import connection_path, form_data, make_connection, press_button

pytestmark = pytest.mark.django_db


class TestSecret:  # A56
    CANARY = "client-secret-canary"

    def test_secret_is_stored_encrypted_and_never_shown(self, as_sonja: Client, caplog: Any, capsys: Any):
        press_button(as_sonja, "_save", client_secret=self.CANARY)
        setting = OidcSetting.objects.get()
        assert self.CANARY not in setting.client_secret and setting.decrypted_client_secret == self.CANARY
        press_button(as_sonja, "_save", setting, client_secret=f"{self.CANARY}-2")
        assert setting.refreshed().decrypted_client_secret == f"{self.CANARY}-2"
        for page in ("change", "history", "delete"):
            content = as_sonja.get(connection_path(setting, page)).content.decode()
            assert self.CANARY not in content and setting.refreshed().client_secret not in content, page
        history_entry = setting.history.latest()
        assert not hasattr(history_entry, "client_secret")
        assert self.CANARY not in repr(setting) + str(setting.payload()) + caplog.text + str(capsys.readouterr())

    def test_a_form_with_an_error_does_not_contain_the_secret(self, as_sonja: Client):
        page = as_sonja.post(
            connection_path(None), {**form_data(client_secret=self.CANARY, realm="no realm"), "_save": "1"}
        )
        assert page.status_code == 200 and self.CANARY not in page.content.decode()

    def test_the_form_shows_whether_a_secret_is_set(self, as_sonja: Client):
        setting = make_connection()
        assert "Not set." in as_sonja.get(connection_path(setting)).content.decode()
        press_button(as_sonja, "_save", setting, client_secret=self.CANARY)
        page = as_sonja.get(connection_path(setting)).content.decode()
        assert "A secret is set. Leave empty to keep it." in page and "Not set." not in page

    def test_an_empty_field_keeps_the_secret_and_a_checkbox_removes_it(self, as_sonja: Client):
        setting = make_connection()
        press_button(as_sonja, "_save", setting, client_secret=self.CANARY)
        press_button(as_sonja, "_save", setting.refreshed(), client_secret="", name="Renamed")
        assert setting.refreshed().decrypted_client_secret == self.CANARY
        press_button(as_sonja, "_save", setting.refreshed(), client_secret="", forget_secret=True)
        assert setting.refreshed().decrypted_client_secret == ""

    def test_the_secret_is_not_kept_for_another_provider(self, as_sonja: Client):
        """Otherwise a user who cannot read the secret could send it to another server."""
        setting = make_connection()
        press_button(as_sonja, "_save", setting, client_secret=self.CANARY)
        press_button(as_sonja, "_save", setting.refreshed(), url_idp="https://mine.example.com")
        assert setting.refreshed().decrypted_client_secret == ""
        press_button(as_sonja, "_save", setting.refreshed(), url_idp="https://idp.example.com", client_secret="another")
        assert setting.refreshed().decrypted_client_secret == "another", "an entered secret belongs to the new provider"

    def test_the_admin_log_names_only_the_field(self, as_sonja: Client):
        from django.contrib.admin.models import LogEntry

        setting = make_connection()
        press_button(as_sonja, "_save", setting, client_secret=self.CANARY)
        entry = LogEntry.objects.latest("pk")
        assert "Client secret" in entry.change_message and self.CANARY not in entry.change_message
