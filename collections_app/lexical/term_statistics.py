"""The words of chunks: how they are stored and counted, and the weight of a query's words.

BM25 without an extension. The weight of a word in its chunk depends only on that chunk and is stored once, in a sparse
vector. The weight of a word in the collection is computed from counts, in the vector of the query. Their inner product
is the score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from collections_app.chunk.splitter import indexed_text
from collections_app.models import Collection, Version

from .language_detection import PLAIN
from .tokens import indexed, prepared

K1 = 1.2
B = 0.75
# Chosen: a chunk's length is its number of characters, relative to the collection's chunk size. So its weights do not
# change when other documents are loaded, and one rule fits every script. With the true average number of words, four
# question sets were answered no better, three of them worse.
CHUNKS_AT_ONCE = 500

# The position of a word in the vector: 28 bits of its hash; positions count from 1.
PLACE = "('x' || substr(md5({lexeme}), 1, 7))::bit(28)::int + 1"
# The hash of the word and its collection, so that one index keeps the words of collections apart.
TERM = "('x' || substr(md5({collection} || ':' || {lexeme}), 1, 16))::bit(64)::bigint"

# A prefix of lexemes, so that each language of a collection has its own words: "die" in German is not "die" in English.
# The language that a collection had before documents had their own has no prefix, so that its words stay valid.
MARK = "CASE WHEN {configuration} = {unmarked} THEN '' ELSE {configuration} || ':' END"
# The number of chunks in a language is counted like a word; no lexeme contains a space.
LANGUAGE = TERM.format(collection="{collection}", lexeme="'language ' || {configuration}")

# Chunk by chunk, because the words of all chunks together would be sorted on disk. Hashing each distinct word only once
# was no faster in English and slower in Chinese, where joining the hashes costs more than md5.
STORE = f"""
    INSERT INTO chunk_words (chunk_id, version_id, terms, weights)
    SELECT given.id, %(version)s, made.terms, made.weights
    FROM unnest(%(ids)s::bigint[], %(words)s::text[], %(lengths)s::float8[]) AS given (id, words, length)
    CROSS JOIN LATERAL (
        WITH word AS MATERIALIZED (
            SELECT {PLACE.format(lexeme="%(mark)s::text || found.lexeme")} AS place,
                {TERM.format(collection="%(collection)s::text", lexeme="%(mark)s::text || found.lexeme")} AS term,
                {K1 + 1} * times.count / (times.count + {K1} * (1 - {B} + {B} * given.length)) AS weight
            FROM unnest(to_tsvector(%(configuration)s::regconfig, given.words)) AS found
            CROSS JOIN LATERAL (SELECT cardinality(found.positions)::float8) AS times (count)
        ), placed AS (
            -- Two words can share a position; their weights add up as if they were one word.
            SELECT place, sum(weight)::real AS weight FROM word GROUP BY place
        )
        SELECT (SELECT array_agg(DISTINCT term) FROM word) AS terms, (
            SELECT '{{' || string_agg(place || ':' || weight, ',' ORDER BY place) || '}}/268435456' FROM placed
        )::sparsevec AS weights
    ) AS made
    WHERE made.terms IS NOT NULL ORDER BY given.id
    ON CONFLICT (chunk_id) DO NOTHING
"""

# In the order of the terms, so that concurrent loads do not deadlock.
COUNT = """
    INSERT INTO term_count AS known (collection_id, term, chunks)
    SELECT %(collection)s, term, %(sign)s * count(*)
    FROM (
        SELECT unnest(terms) AS term FROM chunk_words WHERE version_id = %(version)s
        UNION ALL SELECT 0 FROM chunk WHERE version_id = %(version)s
        UNION ALL SELECT %(language)s FROM chunk WHERE version_id = %(version)s
    ) AS found
    GROUP BY term ORDER BY term
    ON CONFLICT (collection_id, term) DO UPDATE SET chunks = known.chunks + excluded.chunks
"""
# This transaction has locked the rows already, because it changed them above.
FORGET = """
    DELETE FROM term_count WHERE collection_id = %(collection)s AND chunks <= 0 AND term IN (
        SELECT unnest(terms) FROM chunk_words WHERE version_id = %(version)s UNION ALL SELECT 0
        UNION ALL SELECT %(language)s
    )
"""
OF_VERSION = f"""
    SELECT {LANGUAGE.format(collection="collection_id", configuration="text_configuration")}
    FROM document_version WHERE id = %s
"""

# Stop words of the other languages are excluded from `simple`, where they would seem rare.
QUERY_WORDS = f"""
    WITH language AS MATERIALIZED (
        SELECT asked.collection, config.cfgname::text AS configuration,
            {MARK.format(configuration="config.cfgname::text", unmarked="asked.unmarked")} AS mark
        FROM unnest(%(collections)s::text[], %(unmarked)s::text[]) AS asked (collection, unmarked)
        CROSS JOIN pg_ts_config AS config
        JOIN term_count AS known ON known.collection_id = asked.collection
            AND known.term = {LANGUAGE.format(collection="asked.collection", configuration="config.cfgname::text")}
    )
    SELECT language.collection, language.configuration, word.lexeme, word.place, word.term, coalesce(known.chunks, 0)
    FROM language
    CROSS JOIN LATERAL (
        SELECT found.lexeme, {PLACE.format(lexeme="language.mark || found.lexeme")},
            {TERM.format(collection="language.collection", lexeme="language.mark || found.lexeme")}
        FROM unnest(to_tsvector(language.configuration::regconfig, %(words)s)) AS found
    ) AS word (lexeme, place, term)
    LEFT JOIN term_count AS known ON known.collection_id = language.collection AND known.term = word.term
    WHERE language.configuration <> '{PLAIN}' OR NOT EXISTS (
        SELECT FROM language AS other WHERE other.collection = language.collection
            AND to_tsvector(other.configuration::regconfig, word.lexeme) = ''
    )
    ORDER BY language.collection, known.chunks, word.term
"""
SIZES = "SELECT collection_id, chunks FROM term_count WHERE term = 0 AND collection_id = ANY(%s)"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word of a query in one language of a collection; `chunks` is the number of chunks that contain it."""

    lexeme: str
    place: int
    term: int
    chunks: int
    configuration: str = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """The words of a query in one collection, the rarest first; `chunks` is the size of the collection."""

    chunks: int
    words: tuple[QueryWord, ...] = ()

    @property
    def known(self) -> tuple[QueryWord, ...]:
        return tuple([word for word in self.words if word.chunks > 0])

    def vector(self) -> str:
        """The weight of each word, as a sparse vector literal.

        >>> word = QueryWord(lexeme="fox", place=7, term=1, chunks=1)
        >>> QueryTerms(chunks=1, words=(word,)).vector()
        '{7:0.287682}/268435456'
        """
        weights: dict[int, float] = {}
        for word in self.known:
            weights[word.place] = max(weights.get(word.place, 0.0), rarity(word.chunks, self.chunks))
        return "{" + ",".join([f"{place}:{weights[place]:.6f}" for place in sorted(weights)]) + "}/268435456"


def rarity(chunks: int, of: int) -> float:
    """The inverse document frequency of a word that occurs in `chunks` of all chunks.

    >>> round(rarity(1, 1000), 2), round(rarity(1000, 1000), 4)
    (6.5, 0.0005)
    """
    chunks = min(chunks, of)
    return math.log(1 + (of - chunks + 0.5) / (chunks + 0.5))


def store_words(version_id: int, collection_id: str, configuration: str) -> None:
    """Store the words of the version's chunks, and their language; existing rows are kept."""
    configuration = configuration or PLAIN
    size, unmarked = Collection.objects.values_list("chunk_size", "unmarked_configuration").get(pk=collection_id)
    Version.objects.filter(pk=version_id).update(text_configuration=configuration)
    for batch in _batches(version_id):
        texts = [indexed_text(heading_path, text) for _, heading_path, text in batch]
        parameters: dict[str, Any] = {
            "ids": [chunk_id for chunk_id, _, _ in batch],
            "words": [indexed(text) for text in texts],
            "lengths": [len(text) / size for text in texts],
            "collection": collection_id,
            "configuration": configuration,
            "mark": "" if configuration == unmarked else f"{configuration}:",
            "version": version_id,
        }
        with connection.cursor() as cursor:
            cursor.execute(STORE, parameters)


def _batches(version_id: int) -> Iterator[list[tuple[int, list[str], str]]]:
    """Chunk ids with heading paths and texts in batches, because a document can have many thousands."""
    last = -1
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, heading_path, text, number FROM chunk WHERE version_id = %s AND number > %s"
                " ORDER BY number LIMIT %s",
                [version_id, last, CHUNKS_AT_ONCE],
            )
            rows: list[Any] = cursor.fetchall()
        if not rows:
            return
        last = rows[-1][3]
        yield [(chunk_id, heading_path, text) for chunk_id, heading_path, text, _ in rows]


def count_in(version_id: int, collection_id: str) -> None:
    """Add the version's words to the counts, in the transaction that publishes it."""
    _count(version_id, collection_id, 1)


def count_out(version_id: int, collection_id: str) -> None:
    """Subtract the version's words from the counts, in the transaction that withdraws it."""
    _count(version_id, collection_id, -1)


def _count(version_id: int, collection_id: str, sign: int) -> None:
    parameters: dict[str, Any] = {"version": version_id, "collection": collection_id, "sign": sign}
    with connection.cursor() as cursor:
        cursor.execute(OF_VERSION, [version_id])
        parameters["language"] = cursor.fetchone()[0]
        cursor.execute(COUNT, parameters)
        if sign < 0:
            cursor.execute(FORGET, parameters)


def query_terms(query: str, collections: Sequence[Collection]) -> Mapping[str, QueryTerms]:
    """The words of a query by collection id, in each language that occurs in the collection."""
    ids = [each.sys_id for each in collections]
    parameters: dict[str, Any] = {
        "collections": ids,
        "unmarked": [each.unmarked_configuration for each in collections],
        "words": prepared(query),
    }
    words: dict[str, list[QueryWord]] = {collection_id: [] for collection_id in ids}
    with connection.cursor() as cursor:
        cursor.execute(SIZES, [ids])
        sizes = dict(cursor.fetchall())
        cursor.execute(QUERY_WORDS, parameters)
        for collection, configuration, lexeme, place, term, chunks in cursor.fetchall():
            words[collection].append(
                QueryWord(lexeme=lexeme, place=place, term=term, chunks=chunks, configuration=configuration)
            )
    return {pk: QueryTerms(chunks=sizes.get(pk, 0), words=tuple(terms)) for pk, terms in words.items()}
