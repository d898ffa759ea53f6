"""Stores and counts the words of chunks, and computes the weights of a query's words.

BM25 without an extension. The weight of a word in its chunk depends only on that chunk and is stored once, in a sparse
vector. The weight of a word in the collection is computed from counts, in the vector of the query. Their inner product
is the score.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from collections_app.chunk.splitter import indexed_text
from collections_app.models import Chunk, Collection, Version
from system.plain_sql import fetch_rows, run_statement

from .language_detection import SIMPLE_CONFIGURATION
from .tokens import prepare_index_words, prepare_words

# Chosen: a chunk's length is its number of characters, relative to the collection's chunk size. So its weights do not
# change when other documents are loaded, and one rule fits every script. With the true average number of words, results
# for four question sets were not better, and for three of them worse.
K1 = 1.2
B = 0.75

CHUNK_BATCH_SIZE = 500
# A sparse vector holds 16,000 words; a long query with synonyms can have more, read in many languages.
MAX_KNOWN_WORDS = 10_000

# The position of a word in the vector: 28 bits of its hash; positions count from 1.
SPARSE_INDEX_SQL = "('x' || substr(md5({lexeme}), 1, 7))::bit(28)::int + 1"
# The hash of a word and its collection; one index serves all collections.
TERM_SQL = "('x' || substr(md5({collection} || ':' || {lexeme}), 1, 16))::bit(64)::bigint"

# A prefix keeps the lexemes of each language in a collection apart: "die" in German is not "die" in English.
# Languages once belonged to collections. Lexemes in that language have no prefix, so that stored words stay valid.
LEXEME_PREFIX_SQL = "CASE WHEN {configuration} = {unmarked} THEN '' ELSE {configuration} || ':' END"
# The number of chunks in a language is counted like a word; no lexeme contains a space.
LANGUAGE_TERM_SQL = TERM_SQL.format(collection="{collection}", lexeme="'language ' || {configuration}")

# Chunk by chunk, because the words of all chunks together would be sorted on disk. Hashing each distinct word only once
# was no faster in English and slower in Chinese, where joining the hashes costs more than md5.
STORE_WORDS_SQL = f"""
    INSERT INTO chunk_words (chunk_id, version_id, terms, weights)
    SELECT chunk.id, %(version)s, computed.terms, computed.weights
    FROM unnest(%(ids)s::bigint[], %(words)s::text[], %(lengths)s::float8[]) AS chunk (id, words, length)
    CROSS JOIN LATERAL (
        WITH word AS MATERIALIZED (
            SELECT {SPARSE_INDEX_SQL.format(lexeme="%(mark)s::text || token.lexeme")} AS position,
                {TERM_SQL.format(collection="%(collection)s::text", lexeme="%(mark)s::text || token.lexeme")} AS term,
                {K1 + 1} * times.count / (times.count + {K1} * (1 - {B} + {B} * chunk.length)) AS weight
            FROM unnest(to_tsvector(%(configuration)s::regconfig, chunk.words)) AS token
            CROSS JOIN LATERAL (SELECT cardinality(token.positions)::float8) AS times (count)
        ), weighted AS (
            -- Two words can share a position; their weights add up as if they were one word.
            SELECT position, sum(weight)::real AS weight FROM word GROUP BY position
        )
        SELECT (SELECT array_agg(DISTINCT term) FROM word) AS terms, (
            SELECT '{{' || string_agg(position || ':' || weight, ',' ORDER BY position) || '}}/268435456' FROM weighted
        )::sparsevec AS weights
    ) AS computed
    WHERE computed.terms IS NOT NULL ORDER BY chunk.id
    ON CONFLICT (chunk_id) DO NOTHING
"""

# Ordered by term to prevent deadlocks between concurrent loads.
COUNT_SQL = """
    INSERT INTO term_count AS counted (collection_id, term, chunks)
    SELECT %(collection)s, term, %(sign)s * count(*)
    FROM (
        SELECT unnest(terms) AS term FROM chunk_words WHERE version_id = %(version)s
        UNION ALL SELECT 0 FROM chunk WHERE version_id = %(version)s
        UNION ALL SELECT %(language)s FROM chunk WHERE version_id = %(version)s
    ) AS token
    GROUP BY term ORDER BY term
    ON CONFLICT (collection_id, term) DO UPDATE SET chunks = counted.chunks + excluded.chunks
"""
# This transaction has already locked these rows by changing them above.
DELETE_EMPTY_COUNTS_SQL = """
    DELETE FROM term_count WHERE collection_id = %(collection)s AND chunks <= 0 AND term IN (
        SELECT unnest(terms) FROM chunk_words WHERE version_id = %(version)s UNION ALL SELECT 0
        UNION ALL SELECT %(language)s
    )
"""
VERSION_LANGUAGE_SQL = f"""
    SELECT {LANGUAGE_TERM_SQL.format(collection="collection_id", configuration="text_configuration")}
    FROM document_version WHERE id = %s
"""

# The languages of each collection, with the words of the query.
LANGUAGES_SQL = f"""
    language AS MATERIALIZED (
        SELECT scope.collection, scope.words, config.cfgname::text AS configuration,
            {LEXEME_PREFIX_SQL.format(configuration="config.cfgname::text", unmarked="scope.unmarked")} AS mark
        FROM unnest(%(collections)s::text[], %(unmarked)s::text[], %(words)s::text[])
            AS scope (collection, unmarked, words)
        CROSS JOIN pg_ts_config AS config
        JOIN term_count AS counted ON counted.collection_id = scope.collection
            AND counted.term =
                {LANGUAGE_TERM_SQL.format(collection="scope.collection", configuration="config.cfgname::text")}
    )
"""
# Stop words of the other languages are excluded from `simple`, where they would seem rare.
QUERY_WORDS_SQL = f"""
    WITH {LANGUAGES_SQL}
    SELECT language.collection, language.configuration,
        word.lexeme, word.position, word.term, coalesce(counted.chunks, 0), word.is_asked
    FROM language
    CROSS JOIN LATERAL (
        SELECT token.lexeme, {SPARSE_INDEX_SQL.format(lexeme="language.mark || token.lexeme")},
            {TERM_SQL.format(collection="language.collection", lexeme="language.mark || token.lexeme")},
            token.positions[1] <= %(query_length)s
        FROM unnest(to_tsvector(language.configuration::regconfig, language.words)) AS token
    ) AS word (lexeme, position, term, is_asked)
    LEFT JOIN term_count AS counted ON counted.collection_id = language.collection AND counted.term = word.term
    WHERE language.configuration <> '{SIMPLE_CONFIGURATION}' OR NOT EXISTS (
        SELECT FROM language AS other WHERE other.collection = language.collection
            AND to_tsvector(other.configuration::regconfig, word.lexeme) = ''
    )
    ORDER BY language.collection, counted.chunks, word.term
"""
COLLECTION_SIZES_SQL = f"""
    SELECT size.collection_id, size.chunks, coalesce(english.chunks::float8 / nullif(size.chunks, 0), 0)
    FROM term_count AS size LEFT JOIN term_count AS english ON english.collection_id = size.collection_id
        AND english.term = {LANGUAGE_TERM_SQL.format(collection="size.collection_id", configuration="'english'")}
    WHERE size.term = 0 AND size.collection_id = ANY(%s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryWord:
    """A word of a query in one language of a collection; `chunk_count` is the number of chunks that contain it, and
    `is_asked` is false for a synonym that the collection has added."""

    lexeme: str
    position: int
    term: int
    chunk_count: int
    configuration: str = SIMPLE_CONFIGURATION
    is_asked: bool = True


@dataclass(frozen=True, kw_only=True)
class QueryTerms:
    """The words of a query in one collection, the rarest first; `chunk_count` is the size of the collection."""

    chunk_count: int
    words: tuple[QueryWord, ...] = ()
    english_share: float = 0.0

    @cached_property
    def known_words(self) -> tuple[QueryWord, ...]:
        return tuple([word for word in self.words if word.chunk_count > 0][:MAX_KNOWN_WORDS])

    @cached_property
    def asked_weight(self) -> float:
        """The keyword score of a passage that has each word of the query once, in the language where it is lowest."""
        weights: dict[str, float] = {}
        for word in self.words:
            if word.is_asked:
                weight = inverse_document_frequency(word.chunk_count, self.chunk_count)
                weights[word.configuration] = weights.get(word.configuration, 0.0) + weight
        return min(weights.values(), default=0.0)

    def vector(self) -> str:
        """The weight of each word, as a sparse vector literal.

        >>> word = QueryWord(lexeme="fox", position=7, term=1, chunk_count=1)
        >>> QueryTerms(chunk_count=1, words=(word,)).vector()
        '{7:0.287682}/268435456'
        """
        weights: dict[int, float] = {}
        for word in self.known_words:
            weight = inverse_document_frequency(word.chunk_count, self.chunk_count)
            weights[word.position] = max(weight, weights.get(word.position, 0.0))
        return "{" + ",".join([f"{position}:{weights[position]:.6f}" for position in sorted(weights)]) + "}/268435456"


def inverse_document_frequency(chunk_count: int, total_count: int) -> float:
    """The inverse document frequency of a word that occurs in `chunk_count` of all chunks.

    >>> round(inverse_document_frequency(1, 1000), 2), round(inverse_document_frequency(1000, 1000), 4)
    (6.5, 0.0005)
    """
    chunk_count = min(chunk_count, total_count)
    return math.log(1 + (total_count - chunk_count + 0.5) / (chunk_count + 0.5))


def store_words(version_id: int, collection_id: str, configuration: str) -> None:
    """Store the words of a version's chunks, and their language; keep existing rows."""
    configuration = configuration or SIMPLE_CONFIGURATION
    size, unmarked = Collection.objects.values_list("chunk_size", "unmarked_configuration").get(pk=collection_id)
    Version.objects.filter(pk=version_id).update(text_configuration=configuration)
    for batch in _chunk_batches(version_id):
        texts = [indexed_text(heading_path, text) for _, heading_path, text, _ in batch]
        parameters: dict[str, Any] = {
            "ids": [chunk_id for chunk_id, *_ in batch],
            "words": [prepare_index_words(text) for text in texts],
            "lengths": [len(text) / size for text in texts],
            "collection": collection_id,
            "configuration": configuration,
            "mark": "" if configuration == unmarked else f"{configuration}:",
            "version": version_id,
        }
        run_statement(STORE_WORDS_SQL, parameters)


def _chunk_batches(version_id: int) -> Iterator[list[tuple[int, list[str], str, int]]]:
    """Yield ids, heading paths, texts and numbers of chunks in batches, because a document can have thousands."""
    rows = Chunk.objects.filter(version=version_id).values_list("id", "heading_path", "text", "number")
    last_number = -1
    while batch := list(rows.filter(number__gt=last_number).order_by("number")[:CHUNK_BATCH_SIZE]):
        yield batch
        last_number = batch[-1][3]


def change_term_counts(version_id: int, collection_id: str, sign: int) -> None:
    """Add (1) or subtract (-1) the version's words, in the transaction that publishes or withdraws it."""
    ((language,),) = fetch_rows(VERSION_LANGUAGE_SQL, [version_id])
    parameters = {"version": version_id, "collection": collection_id, "sign": sign, "language": language}
    run_statement(COUNT_SQL, parameters)
    if sign < 0:
        run_statement(DELETE_EMPTY_COUNTS_SQL, parameters)


def find_query_terms(
    query: str, collections: Sequence[Collection], synonyms: Mapping[str, str] | None = None
) -> Mapping[str, QueryTerms]:
    """Return the words of a query by collection id, in each language that occurs in the collection, with those that a
    collection has as synonyms."""
    added_words = synonyms or {}
    ids = [collection.sys_id for collection in collections]
    query_words = prepare_words(query)
    parameters: dict[str, Any] = {
        "query_length": len(query_words.split()),
        "collections": ids,
        "unmarked": [collection.unmarked_configuration for collection in collections],
        "words": [f"{query_words} {prepare_words(added_words.get(sys_id, ''))}" for sys_id in ids],
    }
    words: dict[str, list[QueryWord]] = {sys_id: [] for sys_id in ids}
    sizes = {collection: size for collection, *size in fetch_rows(COLLECTION_SIZES_SQL, [ids])}
    names = ("configuration", "lexeme", "position", "term", "chunk_count", "is_asked")
    for collection, *values in fetch_rows(QUERY_WORDS_SQL, parameters):
        words[collection].append(QueryWord(**dict(zip(names, values, strict=True))))
    query_terms = {}
    for sys_id, terms in words.items():
        chunk_count, english_share = sizes.get(sys_id, (0, 0.0))
        query_terms[sys_id] = QueryTerms(chunk_count=chunk_count, english_share=english_share, words=tuple(terms))
    return query_terms
