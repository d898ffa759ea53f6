"""Normalizes logins, wherever they are stored or compared. Pure."""

import unicodedata
from itertools import groupby


def composed(text: str) -> str:
    """Composes a letter and its accent into one character (NFC), as keyboards write them; keeps the case.

    >>> composed("jose\u0301") == composed("jos\xe9") == "jos\xe9"
    True

    Unlike NFC it replaces no character with another: a Kelvin sign must not become a K.

    >>> composed("\u212aarl")
    '\u212aarl'
    """
    parts = (("".join(characters), is_alias) for is_alias, characters in groupby(text, is_canonical_alias))
    return "".join(part if is_alias else unicodedata.normalize("NFC", part) for part, is_alias in parts)


def similarity_key(text: str) -> str:
    """A key that is equal for names that are easily confused.

    >>> similarity_key("Service Desk") == similarity_key("servicedesk ")
    True
    """
    return "".join(text.split()).lower()


def is_canonical_alias(character: str) -> bool:
    """
    >>> is_canonical_alias("\u212a"), is_canonical_alias("\xe9")
    (True, False)
    """
    composed_character = unicodedata.normalize("NFC", character)
    return len(composed_character) == 1 and composed_character != character
