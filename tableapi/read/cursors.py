"""In charge of the opaque cursor of a list: where a page ended, readable for this service and for one list only.

Where the last record's sort values are too long to stand in an address, it is an earlier place and how many to skip.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from django.conf import settings

from system.errors import BadRequest

LONGEST = 4096
# What a number of records to skip takes in it, so that one that was given out can be given out again with one.
ROOM_FOR_SKIP = 32
# Of what a cursor is made of: one of another form does not belong to any list.
FORM = "2"


@dataclass(frozen=True, slots=True)
class Place:
    """The sort values of a record, and how many records behind it are skipped."""

    keys: tuple[str | None, ...]
    skip: int = 0


@lru_cache(maxsize=4)
def _cipher(secret: str) -> AESSIV:
    return AESSIV(hashlib.sha512(b"sysparm_cursor" + secret.encode()).digest())


def write(place: Place, bound_to: list[str]) -> str:
    """Encrypted, since the keys hold values that a field list may not show; the same place gives the same cursor.
    Empty when a sort value is too long to stand in an address."""
    data = json.dumps([place.keys, place.skip], ensure_ascii=False).encode()
    sealed = _cipher(settings.SECRET_KEY).encrypt(data, [_digest(bound_to)])
    written = base64.urlsafe_b64encode(sealed).decode().rstrip("=")
    return written if len(written) <= (LONGEST if place.skip else LONGEST - ROOM_FOR_SKIP) else ""


def read(cursor: str, bound_to: list[str]) -> Place:
    try:
        if len(cursor) > LONGEST:
            raise ValueError
        sealed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        keys, skip = json.loads(_cipher(settings.SECRET_KEY).decrypt(sealed, [_digest(bound_to)]))
    except (ValueError, binascii.Error, InvalidTag):
        raise BadRequest(
            "The cursor does not belong to this list; begin again without it.",
            code="invalid_parameter",
            field="sysparm_cursor",
        ) from None
    return Place(tuple(keys), skip)


def _digest(bound_to: list[str]) -> bytes:
    return hashlib.sha256(json.dumps([FORM, *bound_to]).encode()).digest()
