"""The words of chunks: how they are stored and counted, and the weight of a query's words.

BM25 without an extension. What a word says about its chunk depends on that chunk alone and is stored once, as a sparse
vector; what a word is worth in a collection follows from counts, and stands in the vector of the query. Their inner
product is the score.
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
# Chosen: a chunk's length is counted in characters, and what counts as usual is the collection's chunk size. So its
# weights never change with what is loaded beside it, and one rule fits every script. With the true average number of
# words in place of it, four sets of questions were answered no better, three of them less well.
CHUNKS_AT_ONCE = 500

# Where a word lies in the vector: 28 bits of its hash; vectors count from 1.
PLACE = "('x' || substr(md5({lexeme}), 1, 7))::bit(28)::int + 1"
# Its hash together with its collection, so that one index holds each collection's words apart.
TERM = "('x' || substr(md5({collection} || ':' || {lexeme}), 1, 16))::bit(64)::bigint"

# What a lexeme is hashed with, so that each language of a collection has its own words: "die" in German is not "die" in
# English. The language that a collection had before each document had its own is not marked: its words stay valid.
MARK = "CASE WHEN {configuration} = {unmarked} THEN '' ELSE {configuration} || ':' END"
# The number of chunks in a language is counted as that of a word; no lexeme has a space.
LANGUAGE = TERM.format(collection="{collection}", lexeme="'language ' || {configuration}")

# Each chunk by itself: the words of all together would be sorted on disk. Hashing a word that several have only once
# for all of them was no faster in English and slower in Chinese, where putting the hashes back costs more than md5.
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
            -- Two words may share a place; their weights add up, as if they were one word.
            SELECT place, sum(weight)::real AS weight FROM word GROUP BY place
        )
        SELECT (SELECT array_agg(DISTINCT term) FROM word) AS terms, (
            SELECT '{{' || string_agg(place || ':' || weight, ',' ORDER BY place) || '}}/268435456' FROM placed
        )::sparsevec AS weights
    ) AS made
    WHERE made.terms IS NOT NULL ORDER BY given.id
    ON CONFLICT (chunk_id) DO NOTHING
"""

# In the order of the terms, so that two loads wait for one another and never in a circle.
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
# The rows are ours already: they were changed above, in this transaction.
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

# A stop word of one of the languages is none of `simple`, and would seem rare where few documents are in that.
ASKED = f"""
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
class AskedWord:
    """A word of a query in one language of a collection; `chunks` is the number of those that have it."""

    lexeme: str
    place: int
    term: int
    chunks: int
    configuration: str = PLAIN


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    """The words of a query in one collection of so many chunks, the rarest first."""

    chunks: int
    words: tuple[AskedWord, ...] = ()

    @property
    def known(self) -> tuple[AskedWord, ...]:
        return tuple([each for each in self.words if each.chunks > 0])

    def vector(self) -> str:
        """What each word is worth, as the text of a sparse vector.

        >>> word = AskedWord(lexeme="fox", place=7, term=1, chunks=1)
        >>> QueryTerms(chunks=1, words=(word,)).vector()
        '{7:0.287682}/268435456'
        """
        worth: dict[int, float] = {}
        for each in self.known:
            worth[each.place] = max(worth.get(each.place, 0.0), rarity(each.chunks, self.chunks))
        return "{" + ",".join([f"{place}:{worth[place]:.6f}" for place in sorted(worth)]) + "}/268435456"


def rarity(chunks: int, of: int) -> float:
    """The worth of a word that stands in so many chunks of so many.

    >>> round(rarity(1, 1000), 2), round(rarity(1000, 1000), 4)
    (6.5, 0.0005)
    """
    chunks = min(chunks, of)
    return math.log(1 + (of - chunks + 0.5) / (chunks + 0.5))


def store_words(version_id: int, collection_id: str, configuration: str) -> None:
    """Store the words of the version's chunks, and their language; what is stored already stays."""
    configuration = configuration or PLAIN
    size, unmarked = Collection.objects.values_list("chunk_size", "unmarked_configuration").get(pk=collection_id)
    Version.objects.filter(pk=version_id).update(text_configuration=configuration)
    for batch in _batches(version_id):
        texts = [indexed_text(heading_path, text) for _, heading_path, text in batch]
        given: dict[str, Any] = {
            "ids": [chunk_id for chunk_id, _, _ in batch],
            "words": [indexed(each) for each in texts],
            "lengths": [len(each) / size for each in texts],
            "collection": collection_id,
            "configuration": configuration,
            "mark": "" if configuration == unmarked else f"{configuration}:",
            "version": version_id,
        }
        with connection.cursor() as cursor:
            cursor.execute(STORE, given)


def _batches(version_id: int) -> Iterator[list[tuple[int, list[str], str]]]:
    """Chunk ids with heading paths and texts, some at once: a document may have many thousands."""
    last = -1
    while True:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, heading_path, text, number FROM chunk WHERE version_id = %s AND number > %s"
                " ORDER BY number LIMIT %s",
                [version_id, last, CHUNKS_AT_ONCE],
            )
            found: list[Any] = cursor.fetchall()
        if not found:
            return
        last = found[-1][3]
        yield [(chunk_id, heading_path, text) for chunk_id, heading_path, text, _ in found]


def count_in(version_id: int, collection_id: str) -> None:
    """Count the version's words in, as part of the transaction that makes it searched."""
    _count(version_id, collection_id, 1)


def count_out(version_id: int, collection_id: str) -> None:
    """Count the version's words out, as part of the transaction after which no search sees it."""
    _count(version_id, collection_id, -1)


def _count(version_id: int, collection_id: str, sign: int) -> None:
    given: dict[str, Any] = {"version": version_id, "collection": collection_id, "sign": sign}
    with connection.cursor() as cursor:
        cursor.execute(OF_VERSION, [version_id])
        given["language"] = cursor.fetchone()[0]
        cursor.execute(COUNT, given)
        if sign < 0:
            cursor.execute(FORGET, given)


def asked_words(query: str, collections: Sequence[Collection]) -> Mapping[str, QueryTerms]:
    """The words of a query by collection id, in each language that occurs there: each collection has its own counts."""
    ids = [each.sys_id for each in collections]
    given: dict[str, Any] = {
        "collections": ids,
        "unmarked": [each.unmarked_configuration for each in collections],
        "words": prepared(query),
    }
    found: dict[str, list[AskedWord]] = {each: [] for each in ids}
    with connection.cursor() as cursor:
        cursor.execute(SIZES, [ids])
        sizes = dict(cursor.fetchall())
        cursor.execute(ASKED, given)
        for collection, configuration, lexeme, place, term, chunks in cursor.fetchall():
            found[collection].append(
                AskedWord(lexeme=lexeme, place=place, term=term, chunks=chunks, configuration=configuration)
            )
    return {each: QueryTerms(chunks=sizes.get(each, 0), words=tuple(words)) for each, words in found.items()}
