"""Encodes the position where a page ended as an encrypted cursor, which is valid for one list only.

If the last record's sort values are too long for a URL, it holds an earlier position and a number of records to skip.
"""

import base64
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from system.errors import InvalidParameter

MAX_CURSOR_LENGTH = 4096
# Reserved so that a number of records to skip can be added to any cursor.
SKIP_LENGTH = 32
# Cursors with another format are not valid for any list.
CURSOR_FORMAT = "2"


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """The sort values of a record, and the number of records to skip after it."""

    keys: tuple[str | None, ...]
    skip: int = 0


@lru_cache(maxsize=4)
def _cipher(secret: str) -> AESSIV:
    return AESSIV(hashlib.sha512(b"sysparm_cursor" + secret.encode()).digest())


def encode(position: CursorPosition, list_identity: list[str]) -> str:
    """Return a cursor, or an empty string if it is too long for a URL. It is encrypted because it may contain values
    that were not requested. Equal positions give equal cursors."""
    data = json.dumps([position.keys, position.skip], ensure_ascii=False).encode()
    encrypted = _cipher(settings.SECRET_KEY).encrypt(data, [_digest(list_identity)])
    cursor = base64.urlsafe_b64encode(encrypted).decode().rstrip("=")
    return cursor if len(cursor) <= (MAX_CURSOR_LENGTH if position.skip else MAX_CURSOR_LENGTH - SKIP_LENGTH) else ""


def decode(cursor: str, list_identity: list[str], parameter: str = "sysparm_cursor") -> CursorPosition:
    try:
        if len(cursor) > MAX_CURSOR_LENGTH:
            raise ValueError
        encrypted = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        keys, skip = json.loads(_cipher(settings.SECRET_KEY).decrypt(encrypted, [_digest(list_identity)]))
    except (ValueError, InvalidTag):
        message = "The cursor is not valid for this list. Start again without it."
        raise InvalidParameter(message, field=parameter) from None
    return CursorPosition(tuple(keys), skip)


def _digest(list_identity: list[str]) -> bytes:
    return hashlib.sha256(json.dumps([CURSOR_FORMAT, *list_identity]).encode()).digest()
