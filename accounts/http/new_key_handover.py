"""In charge of a new key's way to the one page that shows it: a reload of that page must not make another key."""

from typing import Any

from system import encryption

SLOT = "new_key"


def leave(session: Any, place: str, name: str, secret: str) -> None:
    """For the page that follows; never in clear, since sessions are rows of the database."""
    session[SLOT] = [place, name, encryption.encrypt(secret)]


def take(session: Any, place: str) -> tuple[str, str] | None:
    """Name and secret, once."""
    if session.get(SLOT, [None])[0] != place:
        return None
    _, name, stored = session.pop(SLOT)
    try:
        return name, encryption.decrypt(stored)
    except encryption.Undecipherable:  # the operator took its key away meanwhile
        return None
