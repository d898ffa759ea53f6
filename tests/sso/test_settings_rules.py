"""Validation of connections by the model, which applies to every way of saving."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError

from sso.connections.saving import save_connection
from sso.models import OidcSetting
from sso.scripts import mapping_script
from system import encryption
from tests.sso.connections import CALLBACK_URL, make_connection

pytestmark = pytest.mark.django_db


def validation_messages(**columns: Any) -> str:
    """The error messages; also checks that only these columns have errors and that nothing is saved."""
    count_before = OidcSetting.objects.count()
    with pytest.raises(ValidationError) as exc_info:
        make_connection(**columns)
    assert set(exc_info.value.message_dict) == set(columns)
    assert OidcSetting.objects.count() == count_before
    return " ".join(exc_info.value.messages)


class TestUrlIdp:
    @pytest.mark.parametrize(
        "url",
        [
            "http://idp.example.com", "file:///etc/passwd", "ftp://idp.example.com", "idp.example.com",
            "//idp.example.com",
            "https://user:secret@idp.example.com", "https://user@idp.example.com", "https://idp.example.com:8443",
            "https://idp.example.com/#x", "https://idp.example.com/?a=b", "https://", "", "https://idp example.com",
            "https://idp.example.com/\r\nX: y", "javascript:alert(1)", "https://" + "a" * 500 + ".example.com",
            "https://ídp.example.com",
        ],
    )  # fmt: skip
    def test_a_forbidden_url_is_refused(self, url: str):  # A23
        assert validation_messages(url_idp=url)

    @pytest.mark.parametrize(
        "host",
        [
            "169.254.169.254", "127.1", "2130706433", "0x7f000001", "①②⑦.⓪.⓪.①", "[::ffff:169.254.169.254]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:a9fe:a9fe::]", "[::169.254.169.254]", "192.0.0.192", "127.0.0.1", "localhost", "[::1]", "0.0.0.0",
            "[fe80::1]",
            "100.100.100.200", "224.0.0.1",
        ],
    )  # fmt: skip
    def test_internal_addresses_are_refused_in_every_form(self, host: str):  # A24
        assert validation_messages(url_idp=f"https://{host}")

    def test_private_networks_are_allowed_unless_turned_off(self, settings: Any):  # A27
        make_connection(url_idp="https://10.0.0.7")
        settings.OUTBOUND_POLICY = {**settings.OUTBOUND_POLICY, "allow_private": False}
        assert "private" in validation_messages(url_idp="https://10.0.0.8")

    def test_the_url_is_normalized(self):
        for url in ("https://idp.example.com", "https://IdP.Example.com:443/", " https://idp.example.com// "):
            assert make_connection(url_idp=url).url_idp == "https://idp.example.com"
        well_known_url = "https://idp.example.com/x/.well-known/openid-configuration"
        assert make_connection(url_idp=well_known_url).url_idp == well_known_url


class TestRealm:
    @pytest.mark.parametrize("realm", ["acme", "A.b_c-1", "x" * 64, "...", "9188040d-6c67-4c5b-b112-36a304b66dad"])
    def test_realm_may_have_letters_digits_dots_dashes_and_underscores(self, realm: str):
        assert make_connection(realm=realm).realm == realm

    @pytest.mark.parametrize(
        "realm",
        ["", ".", "..", "../../x", "a/b", "a?b", "a#b", "%2e%2e", "a b", "ä", "a\n", "a\x00", "x" * 65, "x" * 1024],
    )
    def test_other_characters_in_the_realm_are_refused(self, realm: str):  # A31
        assert validation_messages(realm=realm)


class TestRedirectUri:
    @pytest.mark.parametrize("uri", [CALLBACK_URL, "http://testserver/sso/callback/?x=1", "http://testserver/"])
    def test_a_url_of_this_service_is_stored_unchanged(self, uri: str):  # A22
        assert make_connection(redirect_uri=uri).redirect_uri == uri

    @pytest.mark.parametrize(
        "uri",
        [
            "https://evil.example.com/", "//evil.example.com/", "http://testserver.evil.example.com/",
            "http://testserver@evil.com/",
            "javascript:alert(1)", "/sso/callback/", "sso/callback/", "http://testserver/#x", "http:testserver/", "",
            "http://testserver\\@evil.com/", " http://testserver/sso/callback/", "http://testserver/\n",
            "ftp://testserver/",
        ],
    )  # fmt: skip
    def test_other_urls_are_refused(self, uri: str):  # A21
        assert validation_messages(redirect_uri=uri)

    def test_only_the_origin_of_the_base_url_is_accepted(self, settings: Any):
        settings.BASE_URL = "https://service.example.com"
        make_connection(redirect_uri="https://service.example.com/sso/callback/")
        for other_url in (CALLBACK_URL, "http://service.example.com/sso/callback/", "https://service.example.com:444/"):
            assert validation_messages(redirect_uri=other_url)


class TestOtherColumns:
    @pytest.mark.parametrize("scope", ["openid", "openid email profile", "email openid"])
    def test_a_scope_with_openid_is_accepted(self, scope: str):
        assert make_connection(scope=scope).scope == scope

    @pytest.mark.parametrize(
        "scope", ["", "email", "openidx", "openid  email", " openid", "openid,email", 'openid "x"', "openid\n"]
    )
    def test_other_scopes_are_refused(self, scope: str):
        assert validation_messages(scope=scope)

    @pytest.mark.parametrize(
        ("column", "value"),
        [
            ("name", ""), ("name", "a\nb"), ("name", "x" * 201), ("client_id", ""), ("client_id", "a\x00b"),
            ("client_id", "ä"),
            ("client_id", "x" * 256), ("authorization_type", ""), ("authorization_type", "password"),
            ("user_field", "phone"),
            ("response_type", "token"), ("role_claim", "a\tb"),
            ("group_claim", "a\tb"), ("script", ""), ("script", "function map("),
            ("active", None),
        ],
    )  # fmt: skip
    def test_an_invalid_value_is_refused(self, column: str, value: Any):
        assert validation_messages(**{column: value})

    def test_the_script_is_checked_when_it_is_saved(self):  # A40
        script = "function map(claims) { return {login: claims.sub, is_superuser: true} }"
        assert "is_superuser" in validation_messages(script=script)
        assert make_connection().script == mapping_script.DEFAULT_SCRIPT

    def test_an_unencrypted_secret_is_never_stored(self):  # A56
        assert "is not encrypted" in validation_messages(client_secret="canary")
        assert "printable characters" in validation_messages(client_secret=encryption.encrypt("a\nb"))
        setting = OidcSetting(**{"name": "x"})
        setting.client_secret = encryption.encrypt("canary")
        assert setting.decrypted_client_secret == "canary" and "canary" not in setting.client_secret
        setting.client_secret = ""
        assert setting.client_secret == setting.decrypted_client_secret == ""

    def test_an_undecipherable_secret_does_not_prevent_deactivation(self, settings: Any):
        from cryptography.fernet import Fernet

        setting = make_connection(client_secret=encryption.encrypt("canary"))
        settings.SECRET_ENCRYPTION_KEYS = (Fernet.generate_key().decode(),)
        setting.name = "Renamed"
        save_connection(setting)
        with pytest.raises(encryption.DecryptionFailed):
            _ = setting.refreshed().decrypted_client_secret

    def test_stored_values_are_not_checked_again_on_deactivation(self, settings: Any):
        """The operator restricted the policy after the connection was saved."""
        setting = make_connection(url_idp="https://10.0.0.7", active=True)
        settings.OUTBOUND_POLICY = {**settings.OUTBOUND_POLICY, "allow_private": False}
        setting.active = False
        save_connection(setting)
        setting.active = True
        with pytest.raises(ValidationError, match="private"):
            save_connection(setting)

    def test_saving_a_deleted_connection_fails(self):
        setting = make_connection()
        OidcSetting.objects.filter(pk=setting.pk).delete()
        with pytest.raises(ValidationError, match="was deleted in the meantime"):
            save_connection(setting)
        assert not OidcSetting.objects.exists()


class TestDiscoveredColumns:
    def test_an_outdated_object_does_not_restore_old_endpoints(self):
        setting = make_connection()
        endpoints = setting.endpoints
        assert endpoints is not None
        outdated_setting = OidcSetting.objects.get(pk=setting.pk)
        setting.store_columns(token_endpoint="https://idp.example.com/new")
        setting.store_claims({"sub": "1"})
        outdated_setting.name = "Renamed"
        save_connection(outdated_setting)
        stored_setting = setting.refreshed()
        assert (stored_setting.name, stored_setting.token_endpoint) == ("Renamed", "https://idp.example.com/new")
        assert stored_setting.last_sign_in_claims == {"sub": "1"}

    def test_changing_the_pair_clears_the_endpoints(self):
        setting = make_connection()
        setting.store_claims({"sub": "1"})
        setting.realm = "other"
        save_connection(setting)
        stored_setting = setting.refreshed()
        assert (
            stored_setting.endpoints is None
            and stored_setting.last_sign_in_claims is None
            and stored_setting.jwks_uri == ""
        )

    def test_claims_of_an_earlier_pair_are_not_stored(self):
        setting = make_connection()
        setting_before_change = OidcSetting.objects.get(pk=setting.pk)
        setting.realm = "other"
        save_connection(setting)
        setting_before_change.store_claims({"sub": "1"})
        assert setting.refreshed().last_sign_in_claims is None

    def test_discovery_results_of_an_earlier_pair_are_not_stored(self):
        setting = make_connection()
        setting_before_change = OidcSetting.objects.get(pk=setting.pk)
        setting.realm = "other"
        save_connection(setting)
        setting_before_change.update_unversioned(resolve_error="The provider was not found.")
        assert setting.refreshed().resolve_error == ""

    def test_the_last_entry_is_amended_whatever_pair_the_object_has(self):
        setting = make_connection()
        setting.realm = "other"
        setting.amend_last_entry(needs_approval=True)
        assert setting.refreshed().needs_approval and setting.history.latest().needs_approval

    def test_claims_are_kept_encrypted(self):
        setting = make_connection()
        setting.store_claims({"email": "canary@example.com"})
        assert "canary" not in setting.refreshed().last_claims
        assert "last_claims" not in setting.payload() and not hasattr(setting.history.latest(), "last_claims")

    def test_endpoints_of_an_earlier_pair_are_not_stored(self):
        setting = make_connection()
        endpoints = setting.endpoints
        assert endpoints is not None
        OidcSetting.objects.filter(pk=setting.pk).update(realm="other", issuer="")
        assert not setting.store_endpoints(endpoints)
        assert setting.refreshed().issuer == ""

    def test_only_changed_endpoints_leave_history(self):
        from dataclasses import replace

        setting = make_connection()
        endpoints = setting.endpoints
        assert endpoints is not None
        setting.store_endpoints(endpoints)
        assert setting.history.count() == 1
        setting.store_endpoints(replace(endpoints, token_endpoint="https://idp.example.com/realms/acme/other"))
        assert setting.history.count() == 2 and setting.refreshed().sys_version == 1
