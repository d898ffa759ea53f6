"""Hands a new access key to the page that shows it once, so that a reload does not create another key."""

from typing import Any

from system import encryption

NEW_KEY_ENTRY = "new_key"


def store_new_key(session: Any, page: str, name: str, secret: str) -> None:
    """Stores the key for the next page, encrypted, because sessions are stored in the database."""
    session[NEW_KEY_ENTRY] = [page, name, encryption.encrypt(secret)]


def take_new_key(session: Any, page: str) -> tuple[str, str] | None:
    """Returns name and secret and removes them from the session."""
    if session.get(NEW_KEY_ENTRY, [None])[0] != page:
        return None
    _, name, encrypted_secret = session.pop(NEW_KEY_ENTRY)
    try:
        return name, encryption.decrypt(encrypted_secret)
    except encryption.DecryptionFailed:  # the encryption key was removed in between
        return None
