"""Words of chunks are stored once and counted correctly, also with concurrent writers."""

import hashlib
import threading

import pytest
from django.db import connection, connections, transaction

from collections_app.lexical import term_statistics
from collections_app.models import Chunk, ChunkWords, Collection, Document, TermCount, Version

from .searches import add_document, make_collection

pytestmark = pytest.mark.django_db


def stored_counts(collection: Collection) -> dict[int, int]:
    return dict(TermCount.objects.filter(collection=collection).values_list("term", "chunks"))


def expected_counts(collection: Collection) -> dict[int, int]:
    """The counts computed from the stored rows of searched versions."""
    counts: dict[int, int] = {}
    searched_versions = Version.objects.filter(collection=collection, is_searched=True).values("pk")
    for terms in ChunkWords.objects.filter(version_id__in=searched_versions).values_list("terms", flat=True):
        for term in terms:
            counts[term] = counts.get(term, 0) + 1
    for language in Chunk.objects.filter(version_id__in=searched_versions).values_list(
        "version__text_configuration", flat=True
    ):
        for term in (0, language_term(collection, language)):
            counts[term] = counts.get(term, 0) + 1
    return counts


def language_term(collection: Collection, configuration: str) -> int:
    digest = hashlib.md5(f"{collection.pk}:language {configuration}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def version_without_words(collection: Collection, *texts: str) -> Version:
    """A version with these chunks, whose words are not stored yet."""
    document = Document.objects.create(collection=collection, doc_id=f"d{Document.objects.count()}")
    version = Version.objects.create(document=document, collection=collection, format="text", size=1, sha256="0" * 64)
    for number, text in enumerate(texts):
        Chunk.objects.create(
            version=version, collection=collection, number=number, text=text, char_start=0, char_end=len(text)
        )
    return version


def store_words(version: Version) -> None:
    term_statistics.store_words(version.pk, version.collection_id, version.collection.text_configuration)


def test_term_counts_follow_loads_replacements_and_deletions() -> None:
    collection = make_collection()
    for number in range(5):
        add_document(collection, f"d{number}", f"Printer number {number} has paper and toner {number % 2}.")
        assert stored_counts(collection) == expected_counts(collection)
    add_document(collection, "d0", "Something else entirely.")
    assert stored_counts(collection) == expected_counts(collection)
    assert all(chunks > 0 for chunks in stored_counts(collection).values())


def test_adding_and_removing_counts_leaves_nothing() -> None:
    version = version_without_words(make_collection(), "The quick fox", "and the slow fox")
    store_words(version)
    counts_before = stored_counts(version.collection)
    term_statistics.change_term_counts(version.pk, version.collection_id, 1)
    assert stored_counts(version.collection)[0] == 2 and sorted(stored_counts(version.collection).values()) == [
        1,
        1,
        2,
        2,
        2,
    ]
    term_statistics.change_term_counts(version.pk, version.collection_id, -1)
    assert stored_counts(version.collection) == counts_before == {}


def test_storing_words_twice_equals_storing_them_once() -> None:
    version = version_without_words(make_collection(), "The quick fox")
    store_words(version)
    rows_before = list(ChunkWords.objects.values_list("chunk_id", "terms", "weights"))
    store_words(version)
    assert str(list(ChunkWords.objects.values_list("chunk_id", "terms", "weights"))) == str(rows_before)


def test_stored_words_depend_only_on_the_chunk() -> None:
    """Other documents have no influence."""
    first_collection, second_collection = make_collection("alone"), make_collection("shared")
    version = version_without_words(first_collection, "The quick fox jumps")
    store_words(version)
    for number in range(5):
        add_document(second_collection, f"d{number}", "fox " * 50)
    second_version = version_without_words(second_collection, "The quick fox jumps")
    store_words(second_version)
    weights = [str(ChunkWords.objects.get(version=version).weights.to_text()) for version in (version, second_version)]
    assert weights[0] == weights[1]
    terms = [set(ChunkWords.objects.get(version=version).terms) for version in (version, second_version)]
    assert not terms[0] & terms[1]


def test_headings_are_indexed_with_their_chunk() -> None:
    version = version_without_words(make_collection(), "Press the lid.")
    Chunk.objects.filter(version=version).update(heading_path=["Toner", "Replacing it"])
    store_words(version)
    term_statistics.change_term_counts(version.pk, version.collection_id, 1)
    query_terms = term_statistics.find_query_terms("toner replaced", [version.collection])[version.collection_id]
    assert [word.chunk_count for word in query_terms.words] == [1, 1]


# C24
def test_any_text_can_be_indexed() -> None:
    chinese_text = "".join([chr(0x4E00 + number % 20_000) for number in range(8_000)])
    texts = [
        "x" * 8_000,
        "a " * 4_000,
        chinese_text,
        "<" * 8_000,
        "\u0301" * 8_000,
        " ".join([f"w{number}" for number in range(1_300)]),
        "…",
    ]
    version = version_without_words(make_collection(), *texts)
    # With headings, a chunk can contain as many different characters as there are indexed ones.
    Chunk.objects.filter(version=version, text=chinese_text).update(
        heading_path=["".join([chr(0x20000 + number) for number in range(20_000)])]
    )
    store_words(version)
    assert ChunkWords.objects.filter(version=version).count() == len(texts) - 3
    term_statistics.change_term_counts(version.pk, version.collection_id, 1)
    assert stored_counts(version.collection)[0] == len(texts)


def test_two_words_at_one_position_share_it() -> None:
    """Among 60,000 words, some have the same 28-bit position."""
    position_sql = term_statistics.SPARSE_INDEX_SQL.format(lexeme="'simple:' || word")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT array_agg(word) FROM (SELECT 'w' || n AS word FROM generate_series(1, 60000) n) AS words"
            f" GROUP BY {position_sql} HAVING count(*) > 1 LIMIT 1"
        )
        first_word, second_word = cursor.fetchone()[0][:2]
    version = version_without_words(make_collection(text_configuration="simple"), f"{first_word} {second_word} other")
    store_words(version)
    chunk_words = ChunkWords.objects.get(version=version)
    assert len(chunk_words.terms) == 3 and len(chunk_words.weights.indices()) == 2


def test_word_weights_are_per_collection() -> None:
    rare_collection, common_collection = make_collection("rare"), make_collection("common")
    for number in range(4):
        add_document(rare_collection, f"d{number}", "fox hound" if number == 0 else "hound only")
        add_document(common_collection, f"d{number}", "fox hound")
    query_terms = term_statistics.find_query_terms("fox hound", [rare_collection, common_collection])
    assert [word.chunk_count for word in query_terms[rare_collection.pk].words] == [1, 4]
    assert [word.chunk_count for word in query_terms[common_collection.pk].words] == [4, 4]
    assert query_terms[rare_collection.pk].chunk_count == query_terms[common_collection.pk].chunk_count == 4
    assert term_statistics.inverse_document_frequency(1, 4) > term_statistics.inverse_document_frequency(4, 4) > 0


@pytest.mark.django_db(transaction=True)
def test_concurrent_counts_do_not_deadlock() -> None:
    collection = make_collection()
    texts = ["alpha beta gamma delta", "delta gamma beta alpha", "gamma alpha epsilon beta zeta"]
    versions = [version_without_words(collection, *texts[number % 3 :], *texts[: number % 3]) for number in range(4)]
    for version in versions:
        store_words(version)
    errors: list[BaseException] = []
    barrier = threading.Barrier(len(versions))

    def change_counts_repeatedly(version: Version) -> None:
        try:
            barrier.wait(10)
            for _ in range(15):
                with transaction.atomic():
                    term_statistics.change_term_counts(version.pk, collection.pk, 1)
                with transaction.atomic():
                    term_statistics.change_term_counts(version.pk, collection.pk, -1)
            with transaction.atomic():
                term_statistics.change_term_counts(version.pk, collection.pk, 1)
        except BaseException as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=change_counts_repeatedly, args=(version,)) for version in versions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    Version.objects.filter(collection=collection).update(is_searched=True)
    assert stored_counts(collection) == expected_counts(collection)
