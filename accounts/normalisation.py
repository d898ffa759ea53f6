"""In charge of the one spelling of a login: pure, used where it is stored and wherever it is compared."""

import unicodedata
from itertools import groupby


def composed(text: str) -> str:
    """A letter and its accent as one character (NFC), as keyboards write them: no matter of upper and lower case.

    >>> composed("jose\u0301") == composed("jos\xe9") == "jos\xe9"
    True

    Unlike NFC it makes no character another one: a Kelvin sign is no K, or somebody could call themselves so.

    >>> composed("\u212aarl")
    '\u212aarl'
    """
    parts = (("".join(found), is_another) for is_another, found in groupby(text, stands_for_another))
    return "".join(part if is_another else unicodedata.normalize("NFC", part) for part, is_another in parts)


def bare(text: str) -> str:
    """What two names that people take for one have in common.

    >>> bare("Service Desk") == bare("servicedesk ")
    True
    """
    return "".join(text.split()).lower()


def stands_for_another(character: str) -> bool:
    """
    >>> stands_for_another("\u212a"), stands_for_another("\xe9")
    (True, False)
    """
    composed_alone = unicodedata.normalize("NFC", character)
    return len(composed_alone) == 1 and composed_alone != character
