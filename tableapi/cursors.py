"""In charge of the opaque cursor of a list: where a page ended, readable for this service and for one list only."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from system.errors import BadRequest

LONGEST = 4096


@lru_cache(maxsize=4)
def _cipher(secret: str) -> AESSIV:
    return AESSIV(hashlib.sha512(b"sysparm_cursor" + secret.encode()).digest())


def write(keys: list[str | None], bound_to: list[str]) -> str:
    """Encrypted, since the keys hold values that a field list may not show; the same place gives the same cursor.
    Empty when a sort value is too long to stand in an address."""
    data = json.dumps(keys).encode()
    sealed = _cipher(settings.SECRET_KEY).encrypt(data, [_digest(bound_to)])
    written = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    return written if len(written) <= LONGEST else ""


def read(cursor: str, bound_to: list[str]) -> list[str | None]:
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        keys: list[str | None] = json.loads(_cipher(settings.SECRET_KEY).decrypt(sealed, [_digest(bound_to)]))
    except (ValueError, binascii.Error, InvalidTag):
        raise BadRequest(
            "The cursor does not belong to this list; begin again without it.",
            code="invalid_parameter",
            field="sysparm_cursor",
        ) from None
    return keys


def _digest(bound_to: list[str]) -> bytes:
    return hashlib.sha256(json.dumps(bound_to).encode()).digest()
