"""Encrypts secrets that must be read back. The keys are stored outside the database; new secrets use the newest."""

from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class DecryptionFailed(Exception):
    """A stored secret was encrypted with a key that is not among SVC_SECRET_KEYS."""


@cache
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])


def encrypt(secret: str) -> str:
    return _fernet(tuple(settings.SECRET_ENCRYPTION_KEYS)).encrypt(secret.encode()).decode()


def decrypt(ciphertext: str) -> str:
    try:
        return _fernet(tuple(settings.SECRET_ENCRYPTION_KEYS)).decrypt(ciphertext.encode()).decode()
    except InvalidToken:
        raise DecryptionFailed("A stored secret cannot be decrypted with the keys in SVC_SECRET_KEYS.") from None


def uses_newest_key(ciphertext: str) -> bool:
    try:
        Fernet(settings.SECRET_ENCRYPTION_KEYS[0]).decrypt(ciphertext.encode())
    except InvalidToken:
        return False
    return True


def rotate(ciphertext: str) -> str:
    """The same secret, encrypted with the newest key."""
    return encrypt(decrypt(ciphertext))
