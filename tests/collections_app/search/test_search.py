"""Searches by words, by vectors and by both: results, order and metadata."""

from collections.abc import Callable
from typing import Any

import pytest

from collections_app.embed import local_model
from collections_app.lexical import term_statistics
from collections_app.metadata.filter import Filter
from collections_app.models import ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.search.pipeline import SearchRequest
from system.errors import Unavailable
from tests.collections_app import vector_rows

from .searches import PRINTER_DOCUMENTS, add_document, hit_ids, make_collection, run_search

pytestmark = pytest.mark.django_db


def test_passage_that_answers_is_first_in_every_mode(help_collection: Collection) -> None:
    for mode in ("hybrid", "text", "vector"):
        assert hit_ids(run_search(help_collection, "the printer's lamp is red", mode=mode))[0] == "toner", mode


def test_other_forms_of_a_word_are_found(help_collection: Collection) -> None:
    assert set(hit_ids(run_search(help_collection, "printers stopped", mode="text"))) == {"paper", "toner"}
    assert hit_ids(run_search(help_collection, "booking a company car", mode="text")) == ["car"]


def test_vector_search_finds_passages_without_the_words(help_collection: Collection) -> None:
    assert hit_ids(run_search(help_collection, "email inbox", mode="text")) == []
    assert hit_ids(run_search(help_collection, "email inbox", mode="vector"))[0] == "mail"
    assert hit_ids(run_search(help_collection, "email inbox"))[0] == "mail"


def test_hit_has_all_specified_fields(help_collection: Collection) -> None:
    add_document(help_collection, "sheet", "# Fax\n\nNever fax twice.", status="open", extra=[1, {"a": None}])
    (hit,) = run_search(help_collection, "fax", k=1).hits
    assert (hit.doc_id, hit.collection_name, hit.filename) == ("sheet", "help", "sheet.txt")
    assert hit.metadata == {"status": "open", "extra": [1, {"a": None}]}
    assert (hit.chunk_index, hit.chunks_count, hit.page, hit.page_end) == (0, 1, None, None)
    assert hit.page_content == "# Fax\n\nNever fax twice."
    assert (hit.char_start, hit.char_end) == (0, len(hit.page_content))
    assert hit.score == 1.0 and hit.scores["text"] and hit.scores["vector"]
    assert [hit.page_content[start:stop] for start, stop in hit.highlights] == ["Fax", "fax"]


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_scores_fall_from_one_towards_zero(help_collection: Collection, mode: str) -> None:
    scores = [hit.score for hit in run_search(help_collection, "printer paper and red toner", mode=mode).hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert scores[0] > 0.5


# C32
@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
@pytest.mark.parametrize(
    "query",
    [
        "the of and",
        "xyzzyqwerty",
        "?!",
        "'; DROP TABLE chunk; --",
        "a & !b | (c",
        "\\",
        "'",
        "%s %(x)s {}",
        "😀",
        "x" * 8000,
    ],
)
def test_unusual_query_is_not_an_error(help_collection: Collection, query: str, mode: str) -> None:
    run_search(help_collection, query, mode=mode)


def test_query_without_known_words_has_no_keyword_results(help_collection: Collection) -> None:
    assert hit_ids(run_search(help_collection, "the of and", mode="text")) == []
    assert hit_ids(run_search(help_collection, "xyzzyqwerty", mode="text")) == []
    assert len(hit_ids(run_search(help_collection, "xyzzyqwerty"))) == len(PRINTER_DOCUMENTS)


def test_k_limits_the_number_of_results(help_collection: Collection) -> None:
    assert [len(run_search(help_collection, "printer", k=k).hits) for k in (1, 2, 200)] == [1, 2, 4]


def test_empty_collection_finds_nothing(db: Any) -> None:
    assert run_search(make_collection("empty", text_configuration=""), "printer").hits == []


def test_alpha_of_the_request_takes_precedence_over_the_collection(help_collection: Collection) -> None:
    def scores(**options: Any) -> list[float]:
        return [hit.score for hit in run_search(help_collection, "printer lamp", **options).hits]

    Collection.objects.filter(pk=help_collection.pk).update(alpha=1.0)
    changed_collection = Collection.objects.select_related("space").get(pk=help_collection.pk)
    assert [hit.score for hit in run_search(changed_collection, "printer lamp").hits] == scores(alpha=1.0)
    assert scores(alpha=1.0) != scores(alpha=0.0)


def test_equal_passages_are_in_the_order_of_their_documents(db: Any) -> None:
    collection = make_collection()
    for doc_id in ("c", "a", "b", "d"):
        add_document(collection, doc_id, "The same words everywhere.")
    add_document(collection, "c", "The same words everywhere. ", now="replaced")  # the document has newer chunks
    for k in (2, 4):
        assert hit_ids(run_search(collection, "same words", k=k)) == ["c", "a", "b", "d"][:k]
    assert len({hit.id for hit in run_search(collection, "same words").hits}) == 4


def test_repeated_search_gives_the_same_results(help_collection: Collection) -> None:
    assert run_search(help_collection, "printer paper") == run_search(help_collection, "printer paper")


# C07
def test_filter_returns_only_matching_documents(db: Any) -> None:
    collection = make_collection()
    for number, status in enumerate(["open", "closed", "open"]):
        add_document(collection, f"d{number}", f"Printer number {number}.", status=status, priority=number)
    for mode in ("hybrid", "text", "vector"):
        assert set(hit_ids(run_search(collection, "printer", filter="status=OPEN", mode=mode))) == {"d0", "d2"}
        assert hit_ids(run_search(collection, "printer", filter="status=open^priority>0", mode=mode)) == ["d2"]
        assert hit_ids(run_search(collection, "printer", filter="status=none", mode=mode)) == []


def test_document_that_is_not_searched_is_not_found(help_collection: Collection) -> None:
    Version.objects.filter(document__doc_id="toner").update(is_searched=False)
    for mode in ("hybrid", "text", "vector"):
        for condition in ("", "missingISEMPTY"):
            assert "toner" not in hit_ids(
                run_search(help_collection, "printer toner lamp", mode=mode, filter=condition)
            )


# C41
def test_replaced_document_is_found_only_by_its_new_content(help_collection: Collection) -> None:
    add_document(help_collection, "toner", "The plotter has ink instead.")
    result = run_search(help_collection, "toner lamp plotter ink")
    assert [hit.page_content for hit in result.hits if hit.doc_id == "toner"] == ["The plotter has ink instead."]


def test_several_collections_are_searched_together_each_in_its_language(db: Any) -> None:
    german_help, english_help = make_collection("hilfe", text_configuration="german"), make_collection("help")
    add_document(german_help, "häuser", "Die Drucker stehen in den Häusern am Fluss.")
    add_document(english_help, "houses", "Printers stand in the houses by the river.")
    assert hit_ids(run_search([german_help, english_help], "Haus am Fluß", mode="text")) == ["häuser"]
    assert hit_ids(run_search([german_help, english_help], "house", mode="text")) == ["houses"]
    assert set(hit_ids(run_search([german_help, english_help], "river houses"))) == {"häuser", "houses"}


def test_chinese_and_japanese_are_found_without_spaces(db: Any) -> None:
    collection = make_collection("亚洲", text_configuration="simple")
    add_document(collection, "大学", "东京大学位于日本的首都。")
    add_document(collection, "银行", "银行在周末不营业。")
    (hit,) = run_search(collection, "首都在哪里", mode="text").hits
    assert hit.doc_id == "大学"
    assert [hit.page_content[start:stop] for start, stop in hit.highlights] == ["首都"]


WATER_DOCUMENTS = {
    "水道": "自来水管道在三楼。",
    "饮水": "三楼有饮水机,水桶在旁边,水很冷。",
    "电": "停电时请打电话给前台。",
    "물병": "물병은 냉장고 옆에 있습니다.",
    "alone": "H₂O 水 water",
}


@pytest.mark.parametrize(("query", "expected"), [("水", ["饮水", "水道", "alone"]), ("물", ["물병"]), ("火", [])])
@pytest.mark.parametrize("configuration", ["simple", "english"])
def test_single_character_is_found_within_words(db: Any, query: str, expected: list[str], configuration: str) -> None:
    collection = make_collection("东西", text_configuration=configuration)
    for doc_id, text in WATER_DOCUMENTS.items():
        add_document(collection, doc_id, text)
    result = run_search(collection, query, mode="text")
    assert sorted(hit_ids(result)) == sorted(expected) and hit_ids(result)[:1] == expected[:1]
    for hit in result.hits:
        highlighted_texts = [hit.page_content[start:stop] for start, stop in hit.highlights]
        assert highlighted_texts == [query] * hit.page_content.count(query)


def test_pairs_weigh_as_if_characters_were_not_indexed(db: Any) -> None:
    collection = make_collection("东西", text_configuration="simple")
    add_document(collection, "水道", WATER_DOCUMENTS["水道"])
    (hit,) = run_search(collection, "水管", mode="text").hits
    assert [hit.page_content[start:stop] for start, stop in hit.highlights] == ["水管"]
    query_terms = term_statistics.find_query_terms("水管", [collection])[collection.pk]
    assert [(word.lexeme, word.chunk_count) for word in query_terms.words] == [("水管", 1)]


@pytest.fixture
def collection_with_retired_model(db: Any) -> Collection:
    """A collection whose provider is no longer configured; its words are still indexed."""
    collection = make_collection()
    for doc_id, text in PRINTER_DOCUMENTS.items():
        add_document(collection, doc_id, text)
    retired_space = EmbeddingSpace.objects.create(provider="gone", model="gone", dimensions=8)
    Collection.objects.filter(pk=collection.pk).update(space=retired_space)
    return Collection.objects.select_related("space").get(pk=collection.pk)


# C29
def test_search_without_vectors_uses_keywords_and_reports_it(collection_with_retired_model: Collection) -> None:
    result = run_search(collection_with_retired_model, "printer lamp")
    assert result.is_without_vectors and hit_ids(result)[0] == "toner"
    assert result.hits[0].score == 1.0 and result.hits[0].scores["vector"] is None
    assert not run_search(collection_with_retired_model, "printer lamp", mode="text").is_without_vectors


# C29
def test_vector_search_without_vectors_is_503(collection_with_retired_model: Collection) -> None:
    with pytest.raises(Unavailable):
        run_search(collection_with_retired_model, "printer lamp", mode="vector")


# C29
def test_unavailable_space_makes_the_search_use_keywords(collection_with_retired_model: Collection, db: Any) -> None:
    other_collection = make_collection("other")
    add_document(other_collection, "fax", "The fax has a lamp too.")
    result = run_search([collection_with_retired_model, other_collection], "lamp")
    assert result.is_without_vectors
    assert {hit.scores["vector"] for hit in result.hits} == {None}


def test_search_request_defaults() -> None:
    search_request = SearchRequest(query="x", k=5, filter=Filter())
    assert (search_request.mode, search_request.alpha, search_request.candidate_count) == ("hybrid", None, 100)


# C54
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_search_that_started_before_a_change_of_model_finds_its_vectors(
    mode: str, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_first_call: list[Callable[[], Any]] = []
    encode = vector_rows.make_local_model("letters-a").load()

    def embed_after_change(texts: list[str]) -> Any:
        while on_first_call:
            on_first_call.pop()()
        return encode(texts)

    models = [
        local_model.LocalModel(name="letters-a", dimensions=vector_rows.DIMENSIONS, load=lambda: embed_after_change)
    ]
    for model in [*models, vector_rows.make_local_model("letters-b")]:
        monkeypatch.setitem(local_model.LOCAL_MODELS, model.name, model)
    monkeypatch.setattr(local_model, "_encoders", {})
    old_space, new_space = vector_rows.make_space("letters-a"), vector_rows.make_space("letters-b")
    collection, unchanged_collection = (
        make_collection("moves", space=old_space),
        make_collection("stays", space=old_space),
    )
    for target in (collection, unchanged_collection):
        add_document(target, f"in {target.name}", "Replace the toner.")
    vector_rows.insert_vectors(Version.objects.get(collection=collection), new_space)

    on_first_call.append(lambda: ChunkVector.objects.filter(collection=collection, space=old_space).delete())
    on_first_call.append(lambda: Collection.objects.filter(pk=collection.pk).update(space=new_space))
    result = run_search([collection, unchanged_collection], "toner", mode=mode)
    assert sorted(hit_ids(result)) == ["in moves", "in stays"] and not result.is_without_vectors
    assert all(hit.scores["vector"] is not None for hit in result.hits)
