"""`manage.py reencrypt`: afterwards an old key can be removed, and every secret can still be read."""

from io import StringIO
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command

from accounts.models import User
from config.maintenance import reencryption
from sso.models import OidcSetting, ProviderSession
from system import encryption
from system.records.record import Record
from tableapi import tasks
from tableapi.models import DeferredRecord
from tests.sso.connections import make_connection
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, data_of, field, open_table, table

pytestmark = pytest.mark.django_db
OLD_KEY, NEW_KEY, OTHER_KEY = (Fernet.generate_key().decode() for _ in range(3))
# Hashed secrets are never decrypted.
HASHED_COLUMNS = {("user", "password"), ("accounts_access_key", "digest"), ("accounts_access_key", "session")}


@pytest.fixture(autouse=True)
def use_keys(settings: Any) -> Any:
    def set_keys(*names: str) -> None:
        settings.SECRET_ENCRYPTION_KEYS = list(names)

    set_keys(OLD_KEY)
    return set_keys


def reencrypt() -> str:
    output = StringIO()
    call_command("reencrypt", stdout=output, stderr=output)
    return output.getvalue()


def create_connection_with_secrets() -> OidcSetting:
    setting = make_connection(client_secret=encryption.encrypt("secret-of-client"))
    setting.store_claims({"sub": "1"})
    return setting


class TestProductTables:
    def test_secrets_of_product_tables_can_be_read_with_only_the_new_key(self, use_keys: Any, bob: User):
        setting = create_connection_with_secrets()
        session = ProviderSession.begin(bob, setting, {"iss": "https://i", "sub": "s"}, "id-token")
        version_before, history_count_before = setting.refreshed().sys_version, setting.history.count()
        use_keys(NEW_KEY, OLD_KEY)
        output = reencrypt()
        use_keys(NEW_KEY)

        setting = OidcSetting.objects.get()
        assert (setting.decrypted_client_secret, setting.last_sign_in_claims) == ("secret-of-client", {"sub": "1"})
        session.refresh_from_db()
        assert session.token_hint == "id-token"
        assert "oidc_setting.client_secret: 1 of 1 re-encrypted." in output
        assert "secret-of-client" not in output
        assert (setting.sys_version, setting.history.count()) == (version_before, history_count_before), (
            "the history has no new entry"
        )

    def test_second_run_changes_nothing(self, use_keys: Any):
        create_connection_with_secrets()
        use_keys(NEW_KEY, OLD_KEY)
        reencrypt()
        row_before = OidcSetting.objects.values().get()

        assert "oidc_setting.last_claims: 0 of 1 re-encrypted." in reencrypt()
        assert OidcSetting.objects.values().get() == row_before

    def test_undecryptable_values_are_reported_and_kept(self, use_keys: Any):
        first_setting = create_connection_with_secrets()
        use_keys(OTHER_KEY)
        second_setting = make_connection(name="Second", realm="two", client_secret=encryption.encrypt("of-second"))
        secret_before = OidcSetting.objects.values_list("client_secret", flat=True).get(pk=second_setting.pk)
        use_keys(NEW_KEY, OLD_KEY)
        output = StringIO()
        with pytest.raises(CommandError, match=r"^Undecryptable secrets: 1\. "):
            call_command("reencrypt", stdout=output, stderr=output)
        use_keys(NEW_KEY)

        assert f"oidc_setting.client_secret: no key can decrypt these rows: {second_setting.pk}." in output.getvalue()
        assert first_setting.refreshed().decrypted_client_secret == "secret-of-client"
        assert second_setting.refreshed().client_secret == secret_before

    def test_concurrent_changes_are_kept(self, use_keys: Any, monkeypatch: Any):
        setting = create_connection_with_secrets()
        use_keys(NEW_KEY, OLD_KEY)
        rotate = encryption.rotate

        def encrypt_after_change(stored_secret: str) -> str:
            OidcSetting.objects.update(client_secret=encryption.encrypt("set just now"))
            return rotate(stored_secret)

        monkeypatch.setattr(encryption, "rotate", encrypt_after_change)
        reencrypt()
        assert setting.refreshed().decrypted_client_secret == "set just now"

    def test_all_batches_are_reencrypted(self, use_keys: Any, bob: User, monkeypatch: Any):
        monkeypatch.setattr(reencryption, "BATCH_SIZE", 2)
        setting = make_connection()
        for number in range(5):
            ProviderSession.begin(bob, setting, {"iss": "https://i", "sub": "s"}, f"token-{number}")
        use_keys(NEW_KEY, OLD_KEY)
        reencrypt()
        use_keys(NEW_KEY)

        assert {session.token_hint for session in ProviderSession.objects.all()} == {
            f"token-{number}" for number in range(5)
        }

    def test_every_secret_column_is_hashed_or_reencrypted(self):
        unencrypted_secret_columns = {
            (model._meta.db_table, column)
            for model in apps.get_models()
            if issubclass(model, Record)
            for column in model.secret_columns - model.encrypted_columns
        }

        assert unencrypted_secret_columns == HASHED_COLUMNS


class TestDesignedTables:
    @pytest.fixture(autouse=True)
    def create_devices(self, db: None) -> None:
        table("device")
        field("device", "token", "secret")
        table("laptop", parent="device")
        field("laptop", "contains", "secret")  # also the name of a Django lookup
        for name in ("device", "laptop"):
            open_table(name)

    def tokens(self) -> set[str]:
        return {
            encryption.decrypt(token) for (token,) in query_rows("SELECT token FROM records.device WHERE token <> ''")
        }

    def test_secrets_can_be_read_with_only_the_new_key(self, use_keys: Any, bob: User, monkeypatch: Any):
        monkeypatch.setattr(reencryption, "BATCH_SIZE", 2)
        for number in range(3):
            data_of(api(bob).post("device", {"token": f"token-{number}"}))
        data_of(api(bob).post("device", {}))
        data_of(api(bob).post("laptop", {"token": "of-laptop", "contains": "pin"}))
        rows_before = query_rows("SELECT sys_id, sys_version, sys_updated_at FROM records.device ORDER BY sys_id")
        use_keys(NEW_KEY, OLD_KEY)
        output = reencrypt()
        use_keys(NEW_KEY)

        assert self.tokens() == {"token-0", "token-1", "token-2", "of-laptop"}
        assert [encryption.decrypt(value) for (value,) in query_rows("SELECT contains FROM records.laptop")] == ["pin"]
        assert "device.token: 4 of 4 re-encrypted." in output and "laptop.contains: 1 of 1" in output
        assert (
            query_rows("SELECT sys_id, sys_version, sys_updated_at FROM records.device ORDER BY sys_id") == rows_before
        )

    def test_deferred_records_are_included(self, use_keys: Any, bob: User):
        table("plan", deferred_create=True)
        field("plan", "contains", "secret")
        open_table("plan")
        data_of(api(bob).post("plan", {"contains": "of-plan"}))
        assert DeferredRecord.objects.count() == 1
        use_keys(NEW_KEY, OLD_KEY)
        assert "deferred records, contains: 1 of 1 re-encrypted." in reencrypt()
        use_keys(NEW_KEY)
        tasks.create_deferred()

        assert [encryption.decrypt(value) for (value,) in query_rows("SELECT contains FROM records.plan")] == [
            "of-plan"
        ]
