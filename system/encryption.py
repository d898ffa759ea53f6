"""Encrypts secrets that must be read back. The keys are stored outside the database; the newest one encrypts."""

from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class DecryptionFailed(Exception):
    """A stored secret was encrypted with a key that is not among SVC_SECRET_KEYS."""


@cache
def _keys(configured: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in configured])


def encrypt(secret: str) -> str:
    return _keys(tuple(settings.SECRET_ENCRYPTION_KEYS)).encrypt(secret.encode()).decode()


def decrypt(stored: str) -> str:
    try:
        return _keys(tuple(settings.SECRET_ENCRYPTION_KEYS)).decrypt(stored.encode()).decode()
    except InvalidToken:
        raise DecryptionFailed("A stored secret cannot be read with the keys of SVC_SECRET_KEYS.") from None


def uses_newest_key(stored: str) -> bool:
    try:
        Fernet(settings.SECRET_ENCRYPTION_KEYS[0]).decrypt(stored.encode())
    except InvalidToken:
        return False
    return True


def rotate(stored: str) -> str:
    """The same secret, encrypted with the newest key."""
    try:
        return _keys(tuple(settings.SECRET_ENCRYPTION_KEYS)).rotate(stored.encode()).decode()
    except InvalidToken:
        raise DecryptionFailed("A stored secret cannot be read with the keys of SVC_SECRET_KEYS.") from None
