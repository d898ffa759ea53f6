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
from tests.sso.connections import make
from tests.tableapi.designs import ask
from tests.tableapi.world import api, data, field, open_table, table

pytestmark = pytest.mark.django_db
OLD, NEW, OTHER = (Fernet.generate_key().decode() for _ in range(3))
# Secrets that are hashed: nothing is read back, and no key is in them.
HASHED = {("user", "password"), ("accounts_access_key", "digest")}


@pytest.fixture(autouse=True)
def keys(settings: Any) -> Any:
    def use(*names: str) -> None:
        settings.SECRET_ENCRYPTION_KEYS = list(names)

    use(OLD)
    return use


def reencrypt() -> str:
    output = StringIO()
    call_command("reencrypt", stdout=output, stderr=output)
    return output.getvalue()


def connection_with_secrets() -> OidcSetting:
    created = make(client_secret=encryption.encrypt("secret-of-client"))
    created.store_claims({"sub": "1"})
    return created


class TestTheProductsOwn:
    def test_can_be_read_with_only_the_new_key(self, keys: Any, bob: User):
        setting = connection_with_secrets()
        session = ProviderSession.begin(bob, setting, {"iss": "https://i", "sub": "s"}, "id-token")
        version, changes = setting.refreshed().sys_version, setting.history.count()
        keys(NEW, OLD)
        message = reencrypt()
        keys(NEW)

        setting = OidcSetting.objects.get()
        assert (setting.secret, setting.last_sign_in_claims) == ("secret-of-client", {"sub": "1"})
        session.refresh_from_db()
        assert session.token_hint == "id-token"
        assert "oidc_setting.client_secret: 1 of 1 re-encrypted." in message
        assert "secret-of-client" not in message
        assert (setting.sys_version, setting.history.count()) == (version, changes), "it is no change"

    def test_second_run_changes_nothing(self, keys: Any):
        connection_with_secrets()
        keys(NEW, OLD)
        reencrypt()
        before = OidcSetting.objects.values().get()

        assert "oidc_setting.last_claims: 0 of 1 re-encrypted." in reencrypt()
        assert OidcSetting.objects.values().get() == before

    def test_undecryptable_values_are_reported_and_kept(self, keys: Any):
        first = connection_with_secrets()
        keys(OTHER)
        second = make(name="Second", realm="two", client_secret=encryption.encrypt("of-second"))
        before = OidcSetting.objects.values_list("client_secret", flat=True).get(pk=second.pk)
        keys(NEW, OLD)
        output = StringIO()
        with pytest.raises(CommandError, match="1 secrets could not be decrypted"):
            call_command("reencrypt", stdout=output, stderr=output)
        keys(NEW)

        assert f"oidc_setting.client_secret: cannot be decrypted with any key: {second.pk}." in output.getvalue()
        assert first.refreshed().secret == "secret-of-client"
        assert second.refreshed().client_secret == before

    def test_concurrent_changes_are_kept(self, keys: Any, monkeypatch: Any):
        setting = connection_with_secrets()
        keys(NEW, OLD)
        rotate = encryption.rotate

        def late(stored: str) -> str:
            OidcSetting.objects.update(client_secret=encryption.encrypt("set just now"))
            return rotate(stored)

        monkeypatch.setattr(encryption, "rotate", late)
        reencrypt()
        assert setting.refreshed().secret == "set just now"

    def test_more_rows_than_one_batch(self, keys: Any, bob: User, monkeypatch: Any):
        monkeypatch.setattr(reencryption, "BATCH_SIZE", 2)
        setting = make()
        for number in range(5):
            ProviderSession.begin(bob, setting, {"iss": "https://i", "sub": "s"}, f"token-{number}")
        keys(NEW, OLD)
        reencrypt()
        keys(NEW)

        assert {provider_session.token_hint for provider_session in ProviderSession.objects.all()} == {
            f"token-{n}" for n in range(5)
        }

    def test_every_secret_column_is_hashed_or_reencrypted(self):
        secret = {
            (model.table_name(), column)
            for model in apps.get_models()
            if issubclass(model, Record)
            for column in model.secret_columns - model.encrypted_columns
        }

        assert secret == HASHED


class TestDesignedTables:
    @pytest.fixture(autouse=True)
    def devices(self, db: None) -> None:
        table("device")
        field("device", "token", "secret")
        table("laptop", parent="device")
        field("laptop", "contains", "secret")  # the name of a look-up of the frame's
        for name in ("device", "laptop"):
            open_table(name)

    def tokens(self) -> set[str]:
        return {encryption.decrypt(stored) for (stored,) in ask("SELECT token FROM records.device WHERE token <> ''")}

    def test_secrets_can_be_read_with_only_the_new_key(self, keys: Any, bob: User, monkeypatch: Any):
        monkeypatch.setattr(reencryption, "BATCH_SIZE", 2)
        for number in range(3):
            data(api(bob).post("device", {"token": f"token-{number}"}))
        data(api(bob).post("device", {}))
        data(api(bob).post("laptop", {"token": "of-laptop", "contains": "pin"}))
        before = ask("SELECT sys_id, sys_version, sys_updated_at FROM records.device ORDER BY sys_id")
        keys(NEW, OLD)
        message = reencrypt()
        keys(NEW)

        assert self.tokens() == {"token-0", "token-1", "token-2", "of-laptop"}
        assert [encryption.decrypt(value) for (value,) in ask("SELECT contains FROM records.laptop")] == ["pin"]
        assert "device.token: 4 of 4 re-encrypted." in message and "laptop.contains: 1 of 1" in message
        assert ask("SELECT sys_id, sys_version, sys_updated_at FROM records.device ORDER BY sys_id") == before

    def test_deferred_records_are_included(self, keys: Any, bob: User):
        table("plan", deferred_create=True)
        field("plan", "contains", "secret")
        open_table("plan")
        data(api(bob).post("plan", {"contains": "of-plan"}))
        assert DeferredRecord.objects.count() == 1
        keys(NEW, OLD)
        assert "deferred records, contains: 1 of 1 re-encrypted." in reencrypt()
        keys(NEW)
        tasks.create_deferred()

        assert [encryption.decrypt(value) for (value,) in ask("SELECT contains FROM records.plan")] == ["of-plan"]
