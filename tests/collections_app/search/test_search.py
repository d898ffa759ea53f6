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

from .searches import PRINTERS, ask, make, names, put

pytestmark = pytest.mark.django_db


def test_passage_that_answers_comes_first_in_every_mode(printers: Collection) -> None:
    for mode in ("hybrid", "text", "vector"):
        assert names(ask(printers, "the printer's lamp is red", mode=mode))[0] == "toner", mode


def test_words_are_found_in_their_other_forms(printers: Collection) -> None:
    assert set(names(ask(printers, "printers stopped", mode="text"))) == {"paper", "toner"}
    assert names(ask(printers, "booking a company car", mode="text")) == ["car"]


def test_meaning_finds_what_has_none_of_the_words(printers: Collection) -> None:
    assert names(ask(printers, "email inbox", mode="text")) == []
    assert names(ask(printers, "email inbox", mode="vector"))[0] == "mail"
    assert names(ask(printers, "email inbox"))[0] == "mail"


def test_hit_has_all_specified_fields(printers: Collection) -> None:
    put(printers, "sheet", "# Fax\n\nNever fax twice.", status="open", extra=[1, {"a": None}])
    (hit,) = ask(printers, "fax", k=1).hits
    assert (hit.doc_id, hit.collection_name, hit.filename) == ("sheet", "help", "sheet.txt")
    assert hit.metadata == {"status": "open", "extra": [1, {"a": None}]}
    assert (hit.chunk_index, hit.chunks_count, hit.page, hit.page_end) == (0, 1, None, None)
    assert hit.page_content == "# Fax\n\nNever fax twice."
    assert (hit.char_start, hit.char_end) == (0, len(hit.page_content))
    assert hit.score == 1.0 and hit.scores["text"] and hit.scores["vector"]
    assert [hit.page_content[start:end] for start, end in hit.highlights] == ["Fax", "fax"]


@pytest.mark.parametrize("mode", ["hybrid", "text", "vector"])
def test_scores_fall_from_one_towards_zero(printers: Collection, mode: str) -> None:
    scores = [hit.score for hit in ask(printers, "printer paper and red toner", mode=mode).hits]
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
def test_no_query_is_an_error(printers: Collection, query: str, mode: str) -> None:
    ask(printers, query, mode=mode)


def test_query_without_known_words_has_no_answer_by_words(printers: Collection) -> None:
    assert names(ask(printers, "the of and", mode="text")) == []
    assert names(ask(printers, "xyzzyqwerty", mode="text")) == []
    assert len(names(ask(printers, "xyzzyqwerty"))) == len(PRINTERS)


def test_k_is_the_most_that_is_found(printers: Collection) -> None:
    assert [len(ask(printers, "printer", k=k).hits) for k in (1, 2, 200)] == [1, 2, 4]


def test_empty_collection_finds_nothing(db: Any) -> None:
    assert ask(make("empty", text_configuration=""), "printer").hits == []


def test_share_of_words_is_the_collections_own_or_the_requests(printers: Collection) -> None:
    def best(**more: Any) -> list[float]:
        return [hit.score for hit in ask(printers, "printer lamp", **more).hits]

    Collection.objects.filter(pk=printers.pk).update(alpha=1.0)
    changed = Collection.objects.select_related("space").get(pk=printers.pk)
    assert [hit.score for hit in ask(changed, "printer lamp").hits] == best(alpha=1.0)
    assert best(alpha=1.0) != best(alpha=0.0)


def test_equal_passages_stand_in_the_order_of_their_documents(db: Any) -> None:
    collection = make()
    for doc_id in ("c", "a", "b", "d"):
        put(collection, doc_id, "The same words everywhere.")
    put(collection, "c", "The same words everywhere. ", now="replaced")  # newer chunks, the same document
    for k in (2, 4):
        assert names(ask(collection, "same words", k=k)) == ["c", "a", "b", "d"][:k]
    assert len({hit.id for hit in ask(collection, "same words").hits}) == 4


def test_same_search_answers_the_same(printers: Collection) -> None:
    assert ask(printers, "printer paper") == ask(printers, "printer paper")


# C07
def test_filter_keeps_what_its_conditions_say(db: Any) -> None:
    collection = make()
    for number, status in enumerate(["open", "closed", "open"]):
        put(collection, f"d{number}", f"Printer number {number}.", status=status, priority=number)
    for mode in ("hybrid", "text", "vector"):
        assert set(names(ask(collection, "printer", filter="status=OPEN", mode=mode))) == {"d0", "d2"}
        assert names(ask(collection, "printer", filter="status=open^priority>0", mode=mode)) == ["d2"]
        assert names(ask(collection, "printer", filter="status=none", mode=mode)) == []


def test_document_that_is_not_searched_is_not_found(printers: Collection) -> None:
    Version.objects.filter(document__doc_id="toner").update(is_searched=False)
    for mode in ("hybrid", "text", "vector"):
        for name in ("", "missingISEMPTY"):
            assert "toner" not in names(ask(printers, "printer toner lamp", mode=mode, filter=name))


# C41
def test_replaced_document_is_found_with_its_new_content_alone(printers: Collection) -> None:
    put(printers, "toner", "The plotter has ink instead.")
    result = ask(printers, "toner lamp plotter ink")
    assert [hit.page_content for hit in result.hits if hit.doc_id == "toner"] == ["The plotter has ink instead."]


def test_several_collections_are_searched_together_each_in_its_language(db: Any) -> None:
    german, english = make("hilfe", text_configuration="german"), make("help")
    put(german, "häuser", "Die Drucker stehen in den Häusern am Fluss.")
    put(english, "houses", "Printers stand in the houses by the river.")
    assert names(ask([german, english], "Haus am Fluß", mode="text")) == ["häuser"]
    assert names(ask([german, english], "house", mode="text")) == ["houses"]
    assert set(names(ask([german, english], "river houses"))) == {"häuser", "houses"}


def test_chinese_and_japanese_are_found_without_spaces(db: Any) -> None:
    collection = make("亚洲", text_configuration="simple")
    put(collection, "大学", "东京大学位于日本的首都。")
    put(collection, "银行", "银行在周末不营业。")
    (hit,) = ask(collection, "首都在哪里", mode="text").hits
    assert hit.doc_id == "大学"
    assert [hit.page_content[start:end] for start, end in hit.highlights] == ["首都"]


WATER = {
    "水道": "自来水管道在三楼。",
    "饮水": "三楼有饮水机,水桶在旁边,水很冷。",
    "电": "停电时请打电话给前台。",
    "물병": "물병은 냉장고 옆에 있습니다.",
    "alone": "H₂O 水 water",
}


@pytest.mark.parametrize(("query", "expected"), [("水", ["饮水", "水道", "alone"]), ("물", ["물병"]), ("火", [])])
@pytest.mark.parametrize("configuration", ["simple", "english"])
def test_one_character_is_found_in_words_that_it_is_part_of(
    db: Any, query: str, expected: list[str], configuration: str
) -> None:
    collection = make("东西", text_configuration=configuration)
    for doc_id, text in WATER.items():
        put(collection, doc_id, text)
    result = ask(collection, query, mode="text")
    assert sorted(names(result)) == sorted(expected) and names(result)[:1] == expected[:1]
    for hit in result.hits:
        marked = [hit.page_content[start:end] for start, end in hit.highlights]
        assert marked == [query] * hit.page_content.count(query)


def test_pairs_weigh_as_if_characters_were_not_indexed(db: Any) -> None:
    collection = make("东西", text_configuration="simple")
    put(collection, "水道", WATER["水道"])
    (hit,) = ask(collection, "水管", mode="text").hits
    assert [hit.page_content[start:end] for start, end in hit.highlights] == ["水管"]
    words = term_statistics.find_query_terms("水管", [collection])[collection.pk]
    assert [(word.lexeme, word.chunks) for word in words.words] == [("水管", 1)]


@pytest.fixture
def unasked(db: Any) -> Collection:
    """Its space has a provider that is not configured any more; its words are there."""
    collection = make()
    for doc_id, text in PRINTERS.items():
        put(collection, doc_id, text)
    gone = EmbeddingSpace.objects.create(provider="gone", model="gone", dimensions=8)
    Collection.objects.filter(pk=collection.pk).update(space=gone)
    return Collection.objects.select_related("space").get(pk=collection.pk)


# C29
def test_search_without_vectors_uses_words_and_says_so(unasked: Collection) -> None:
    result = ask(unasked, "printer lamp")
    assert result.is_without_vectors and names(result)[0] == "toner"
    assert result.hits[0].score == 1.0 and result.hits[0].scores["vector"] is None
    assert not ask(unasked, "printer lamp", mode="text").is_without_vectors


# C29
def test_vector_search_without_vectors_is_503(unasked: Collection) -> None:
    with pytest.raises(Unavailable):
        ask(unasked, "printer lamp", mode="vector")


# C29
def test_one_unavailable_space_makes_the_search_use_words(unasked: Collection, db: Any) -> None:
    other = make("other")
    put(other, "fax", "The fax has a lamp too.")
    result = ask([unasked, other], "lamp")
    assert result.is_without_vectors
    assert {hit.scores["vector"] for hit in result.hits} == {None}


def test_search_request_defaults() -> None:
    search_request = SearchRequest(query="x", k=5, filter=Filter())
    assert (search_request.mode, search_request.alpha, search_request.count) == ("hybrid", None, 100)


# C54
@pytest.mark.parametrize("mode", ["hybrid", "vector"])
def test_search_that_began_before_its_collection_went_over_finds_its_vectors(
    mode: str, db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_over: list[Callable[[], Any]] = []
    encode = vector_rows.local_model("letters-a").load()

    def slow(texts: list[str]) -> Any:
        while goes_over:
            goes_over.pop()()
        return encode(texts)

    models = [local_model.LocalModel(name="letters-a", dimensions=vector_rows.DIMENSIONS, load=lambda: slow)]
    for model in [*models, vector_rows.local_model("letters-b")]:
        monkeypatch.setitem(local_model.LOCAL_MODELS, model.name, model)
    monkeypatch.setattr(local_model, "_loaded", {})
    old, new = vector_rows.make_space("letters-a"), vector_rows.make_space("letters-b")
    collection, stays = make("moves", space=old), make("stays", space=old)
    for loaded in (collection, stays):
        put(loaded, f"in {loaded.name}", "Replace the toner.")
    vector_rows.give_vectors(Version.objects.get(collection=collection), new)

    goes_over.append(lambda: ChunkVector.objects.filter(collection=collection, space=old).delete())
    goes_over.append(lambda: Collection.objects.filter(pk=collection.pk).update(space=new))
    result = ask([collection, stays], "toner", mode=mode)
    assert sorted(names(result)) == ["in moves", "in stays"] and not result.is_without_vectors
    assert all(hit.scores["vector"] is not None for hit in result.hits)
