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
    ciphertext = encryption.encrypt("canary")

    assert "canary" not in ciphertext
    assert encryption.decrypt(ciphertext) == "canary"
    assert encryption.encrypt("canary") != ciphertext


def test_after_a_rotation_old_secrets_stay_readable(keys, settings):
    ciphertext = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1], keys[0])
    assert encryption.decrypt(ciphertext) == "canary"

    rotated_ciphertext = encryption.rotate(ciphertext)
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)
    assert encryption.decrypt(rotated_ciphertext) == "canary"
    with pytest.raises(encryption.DecryptionFailed):
        encryption.decrypt(ciphertext)


def test_missing_key_error_reveals_nothing(keys, settings):
    ciphertext = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)

    with pytest.raises(encryption.DecryptionFailed) as exc_info:
        encryption.rotate(ciphertext)
    assert ciphertext not in str(exc_info.value)
