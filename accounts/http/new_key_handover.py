"""Hands a new access key to the page that shows it once, so that a reload does not create another key."""

from typing import Any

from system import encryption

SLOT = "new_key"


def store(session: Any, page: str, name: str, secret: str) -> None:
    """Keeps the key for the next page; encrypted, because sessions are rows of the database."""
    session[SLOT] = [page, name, encryption.encrypt(secret)]


def take(session: Any, page: str) -> tuple[str, str] | None:
    """Returns name and secret, once."""
    if session.get(SLOT, [None])[0] != page:
        return None
    _, name, stored = session.pop(SLOT)
    try:
        return name, encryption.decrypt(stored)
    except encryption.DecryptionFailed:  # the encryption key was removed in between
        return None
