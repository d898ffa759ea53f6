"""The synonyms of a collection: one group of words or phrases a line, separated by commas.

A query with one of them also finds the others.
"""

import re
from collections.abc import Mapping, Sequence

from django.core.exceptions import ValidationError

from collections_app.models import Collection
from system.plain_sql import fetch_rows

from .term_statistics import LANGUAGES_SQL
from .tokens import COMBINING_MARKS, prepare_words

MAX_SYNONYMS_LENGTH = 20_000
SEPARATOR = re.compile("[,\uff0c\u3001]")  # also the commas of Chinese and Japanese
# Neither with accents or vowel signs, nor a Chinese character or a Korean syllable, which are words.
LONE_LETTER = re.compile(rf"(?<![\w{COMBINING_MARKS}])[^\W\d_\u3400-\U000323af](?![\w{COMBINING_MARKS}])")
# Compared in each language of the collection, so that "printers" in a query matches "printer".
MATCHING_LINES_SQL = f"""
    WITH {LANGUAGES_SQL}, query AS MATERIALIZED (
        SELECT collection, configuration::regconfig AS configuration,
            to_tsvector(configuration::regconfig, words) AS words
        FROM language
    )
    SELECT DISTINCT collection, synonym.line
    FROM query JOIN unnest(%(owners)s::text[], %(lines)s::int[], %(terms)s::text[]) AS synonym (owner, line, term)
        ON synonym.owner = query.collection
    WHERE query.words @@ phraseto_tsquery(query.configuration, synonym.term)
    ORDER BY collection, synonym.line
"""


def check_synonyms(text: str) -> str:
    """Returns the lines without empty ones and spaces. Raises ValidationError.

    >>> check_synonyms("printer,  MFP \\n\\n car, vehicle")
    'printer, MFP\\ncar, vehicle'
    """
    lines = []
    for number, line in enumerate(text.splitlines(), 1):
        terms = [" ".join(term.split()) for term in SEPARATOR.split(line)]
        if terms == [""]:
            continue
        if len(terms) < 2 or not all(prepare_words(term).strip() for term in terms):
            raise ValidationError(f"Line {number} must have two or more words or phrases, separated by commas.")
        lines.append(", ".join(terms))
    stored_text = "\n".join(lines)
    if len(stored_text) > MAX_SYNONYMS_LENGTH:
        raise ValidationError(f"Enter at most {MAX_SYNONYMS_LENGTH:,} characters, with a space after each comma.")
    return stored_text


def find_synonyms(query: str, collections: Sequence[Collection]) -> Mapping[str, str]:
    """Returns the words that each collection adds to a query, by collection id."""
    groups = {
        collection.pk: [line.split(", ") for line in collection.synonyms.splitlines()]
        for collection in collections
        if collection.synonyms
    }
    if not groups:
        return {}
    rows = [
        (owner, line, prepare_words(term))
        for owner, lines in groups.items()
        for line, terms in enumerate(lines)
        for term in terms
    ]
    owners, lines, terms = zip(*rows, strict=True)
    parameters = {
        "collections": list(groups),
        "unmarked": [""] * len(groups),
        "words": [prepare_words(query)] * len(groups),
        "owners": list(owners),
        "lines": list(lines),
        "terms": list(terms),
    }
    found: dict[str, str] = {}
    for owner, line in fetch_rows(MATCHING_LINES_SQL, parameters):
        found[owner] = " ".join([found.get(owner, ""), *map(without_lone_letters, groups[owner][line])])
    return found


def without_lone_letters(term: str) -> str:
    """The words of a phrase are also searched one by one, but a single letter says nothing if there are longer words.

    >>> without_lone_letters("O-ring"), without_lone_letters("C++"), without_lone_letters("Windows 7")
    (' -ring', 'C++', 'Windows 7')
    """
    longer_words = LONE_LETTER.sub(" ", term)
    return longer_words if prepare_words(longer_words).strip() else term
