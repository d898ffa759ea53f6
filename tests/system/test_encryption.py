"""Stored secrets: encrypted with the newest key, readable with all configured keys."""

import pytest
from cryptography.fernet import Fernet

from system import encryption


@pytest.fixture
def keys(settings) -> list[str]:
    secret_keys = [Fernet.generate_key().decode() for _ in range(2)]
    settings.SECRET_ENCRYPTION_KEYS = (secret_keys[0],)
    return secret_keys


def test_secret_round_trips_and_is_stored_encrypted(keys):
    encrypted = encryption.encrypt("canary")

    assert "canary" not in encrypted
    assert encryption.decrypt(encrypted) == "canary"
    assert encryption.encrypt("canary") != encrypted


def test_after_a_rotation_old_secrets_stay_readable(keys, settings):
    encrypted = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1], keys[0])
    assert encryption.decrypt(encrypted) == "canary"

    rotated_value = encryption.rotate(encrypted)
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)
    assert encryption.decrypt(rotated_value) == "canary"
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(encrypted)


def test_missing_key_error_reveals_nothing(keys, settings):
    encrypted = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)

    with pytest.raises(encryption.DecryptionFailed) as error:
        encryption.rotate(encrypted)
    assert encrypted not in str(error.value)
