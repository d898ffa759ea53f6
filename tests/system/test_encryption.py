"""Stored secrets: encrypted by the newest key, readable by all given ones."""

import pytest
from cryptography.fernet import Fernet

from system import encryption


@pytest.fixture
def keys(settings) -> list[str]:
    made = [Fernet.generate_key().decode() for _ in range(2)]
    settings.SECRET_ENCRYPTION_KEYS = (made[0],)
    return made


def test_a_secret_is_read_back_and_its_stored_form_does_not_show_it(keys):
    stored = encryption.encrypt("canary")

    assert "canary" not in stored
    assert encryption.decrypt(stored) == "canary"
    assert encryption.encrypt("canary") != stored


def test_after_a_rotation_old_secrets_stay_readable(keys, settings):
    stored = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1], keys[0])
    assert encryption.decrypt(stored) == "canary"

    rotated = encryption.rotate(stored)
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)
    assert encryption.decrypt(rotated) == "canary"
    with pytest.raises(encryption.Undecipherable):
        encryption.decrypt(stored)


def test_without_the_key_the_error_shows_nothing(keys, settings):
    stored = encryption.encrypt("canary")
    settings.SECRET_ENCRYPTION_KEYS = (keys[1],)

    with pytest.raises(encryption.Undecipherable) as error:
        encryption.rotate(stored)
    assert stored not in str(error.value)
