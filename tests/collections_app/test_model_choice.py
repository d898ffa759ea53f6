"""Collections in one language change to its model: when they do, how far they are, and that nothing is lost."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models.functions import Now

from accounts import demo as demo_users
from collections_app import demo_documents, embed, tasks
from collections_app.documents import deletion
from collections_app.embed import local_model
from collections_app.models import ChunkVector, Collection, EmbeddingSpace, Version
from collections_app.vectors import model_choice, reembedding
from tests.collections_app.http.calls import API_PATH, LOAD_TEXT_PATH, KeyCaller, make_key_caller
from tests.collections_app.ingest.world import process_queue, store_document
from tests.collections_app.library import add_document, make_library_collection
from tests.support.users import PASSWORD, make_user

pytestmark = pytest.mark.django_db(transaction=True)

DEFAULT, ENGLISH, RUSSIAN = "wordllama-l2-supercat", "all-MiniLM-L6-v2", "navec-news-v1"
TEXTS = {
    "english": "If the lamp of the printer is red, then the toner is empty and you have to replace it. Number {}.",
    "russian": "Если лампа на принтере красная, то тонер закончился, и его нужно заменить. Номер {}.",  # noqa: RUF001
    "german": "Wenn die Lampe des Druckers rot ist, dann ist der Toner leer, und du musst ihn ersetzen. Nummer {}.",
}


@pytest.fixture
def caller(db: Any) -> KeyCaller:
    return make_key_caller(make_user("mara", "collection_admin"))


@pytest.fixture
def collection(db: Any) -> Collection:
    return make_library_collection("manuals")


def load(collection: Collection, language: str, first: int, last: int | None = None) -> Collection:
    for number in range(first, (last or first) + 1):
        add_document(collection, TEXTS[language].format(number), doc_id=f"{language} {number}")
    return collection.refreshed()


def models_of(collection: Collection) -> tuple[str, str | None]:
    collection = collection.refreshed()
    return collection.space.model, collection.next_space.model if collection.next_space else None


def read_progress(caller: KeyCaller) -> Any:
    """The progress of the only collection, which both lists must agree on."""
    (entry,) = caller.get(API_PATH).json()
    (listed_entry,) = caller.get("/get_list_of_collection").json()
    assert entry["embedding_progress"] == listed_entry["embedding_progress"]
    return entry["embedding_progress"]


@pytest.mark.parametrize(("language", "model"), [("english", ENGLISH), ("russian", RUSSIAN)])
def test_collection_in_one_language_changes_to_its_model(caller: KeyCaller, language: str, model: str):
    for number in (1, 2):
        body = {"text": TEXTS[language].format(number), "collection_name": "manuals"}
        assert caller.post(LOAD_TEXT_PATH, body).status_code == 201
        # The load itself embeds with a fast model, but searches do not use it yet.
        remaining = number if model == ENGLISH else 1
        assert read_progress(caller) == {"model": model, "total": number, "remaining": remaining}
    search = {"collection_names": ["manuals"], "query": TEXTS[language].format(2), "k": 1}
    first_hits = caller.post("/get_relevant_documents", search).json()

    tasks.fill_new_spaces()

    assert read_progress(caller) is None
    assert caller.get(API_PATH).json()[0]["embedding_model"] == model
    (hit,) = caller.post("/get_relevant_documents", search).json()
    assert hit["page_content"] == first_hits[0]["page_content"] and hit["scores"]["vector"] > 0.99


def test_a_load_is_published_without_waiting_for_a_slow_model(collection: Collection):
    load(collection, "english", 1, 2)

    assert set(ChunkVector.objects.values_list("space__model", flat=True)) == {DEFAULT}


def test_language_needs_nine_tenths_and_keeps_its_model_with_eight(collection: Collection):
    load(collection, "german", 1)
    assert models_of(load(collection, "english", 1, 8)) == (DEFAULT, None)
    assert models_of(load(collection, "english", 9)) == (DEFAULT, ENGLISH)
    tasks.fill_new_spaces()
    # 9 of 11 passages are in English, then 9 of 12.
    assert models_of(load(collection, "german", 2)) == (ENGLISH, None)
    assert models_of(load(collection, "german", 3)) == (ENGLISH, DEFAULT)
    # Back at 9 tenths, while the change to the default model is due.
    assert models_of(load(collection, "english", 10, 27)) == (ENGLISH, None)


def test_setting_overrides_languages(caller: KeyCaller, collection: Collection):
    load(collection, "english", 1)
    path = f"{API_PATH}/{collection.pk}"
    for choice, expected_models in (
        (DEFAULT, (DEFAULT, None)),
        (RUSSIAN, (DEFAULT, RUSSIAN)),
        ("", (DEFAULT, ENGLISH)),
    ):
        response = caller.patch(path, {"embedding_model_choice": choice})
        assert response.status_code == 200 and response.json()["embedding_model_choice"] == choice
        assert models_of(collection) == expected_models
        assert (response.json()["embedding_progress"] is None) is (expected_models[1] is None)
        load(collection, "english", 1)
        assert models_of(collection) == expected_models
    assert caller.patch(path, {"embedding_model_choice": "other"}).status_code == 422


def test_new_collection_begins_with_the_model_of_its_setting(caller: KeyCaller):
    response = caller.post(API_PATH, {"collection_name": "manuals", "embedding_model_choice": RUSSIAN})

    assert response.status_code == 201 and response.json()["embedding_model"] == RUSSIAN
    assert models_of(load(Collection.objects.get(), "english", 1)) == (RUSSIAN, None)


@pytest.mark.parametrize(
    "options", [{"model": DEFAULT}, {"provider": "openai", "model": "m", "base_url": "http://127.0.0.1:9"}]
)
def test_configured_model_is_kept(collection: Collection, settings: Any, options: dict[str, Any]):
    settings.EMBEDDING = {**settings.EMBEDDING, **options}
    Collection.objects.filter(pk=collection.pk).update(embedding_model_choice=RUSSIAN)

    assert models_of(load(collection, "english", 1)) == (DEFAULT, None)
    model_choice.apply_choice(collection.refreshed())
    assert models_of(collection) == (DEFAULT, None)


def test_a_language_model_that_changed_is_replaced_by_its_new_version(collection: Collection):
    load(collection, "english", 1)
    tasks.fill_new_spaces()
    EmbeddingSpace.objects.filter(model=ENGLISH).update(probe=[1.0, *[0.0] * 383])

    call_command("collections", "model-changed", stdout=io.StringIO())

    assert collection.refreshed().space.provider == embed.RETIRED_PROVIDER
    assert models_of(collection)[1] == ENGLISH


def test_slow_model_waits_for_loads(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    load(collection, "english", 1, 3)
    store_document(collection, TEXTS["english"].format(4).encode())
    tasks.fill_new_spaces()
    assert models_of(collection) == (DEFAULT, ENGLISH)
    process_queue()
    monkeypatch.setattr(reembedding, "BUSY_CHUNKS", 2)
    tasks.fill_new_spaces()
    assert models_of(collection) == (DEFAULT, ENGLISH)
    Version.objects.update(created_at=Now() - reembedding.BUSY_PERIOD)
    tasks.fill_new_spaces()
    assert models_of(collection) == (ENGLISH, None)


def while_embedding(monkeypatch: pytest.MonkeyPatch, action: Callable[[], Any]) -> None:
    """Runs the action once, after the English model has embedded a batch that is not yet stored."""
    encode = local_model._encoder(embed.get_local_model(ENGLISH))
    actions = [action]

    def encode_and_act(texts: list[str]) -> Any:
        vectors = encode(texts)
        if actions:
            actions.pop()()
        return vectors

    monkeypatch.setitem(local_model._encoders, ENGLISH, encode_and_act)


def test_setting_that_changes_while_passages_are_embedded_wins(
    caller: KeyCaller, collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    load(collection, "english", 1, 3)
    path = f"{API_PATH}/{collection.pk}"
    while_embedding(monkeypatch, lambda: caller.patch(path, {"embedding_model_choice": DEFAULT}))

    tasks.fill_new_spaces()

    assert models_of(collection) == (DEFAULT, None) and read_progress(caller) is None
    Collection.objects.update(reembed_at=Now())
    tasks.fill_new_spaces()
    assert set(ChunkVector.objects.values_list("space__model", flat=True)) == {DEFAULT}


def test_collection_that_is_deleted_while_passages_are_embedded(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    load(collection, "english", 1, 3)
    while_embedding(monkeypatch, lambda: deletion.delete_collection(collection))

    tasks.fill_new_spaces()
    tasks.purge()

    assert not ChunkVector.objects.exists() and not Collection.objects.exists()


def test_document_loaded_while_passages_are_embedded_is_not_lost(
    collection: Collection, monkeypatch: pytest.MonkeyPatch
):
    load(collection, "english", 1, 3)
    while_embedding(monkeypatch, lambda: load(collection, "english", 4, 6))

    for _ in range(2):
        tasks.fill_new_spaces()

    assert models_of(collection) == (ENGLISH, None)
    assert ChunkVector.objects.filter(space__model=ENGLISH, version__is_searched=True).count() == 6


def test_a_killed_worker_leaves_the_change_due(collection: Collection, monkeypatch: pytest.MonkeyPatch):
    class Killed(BaseException):
        pass

    def kill() -> None:
        raise Killed

    load(collection, "english", 1, 3)
    while_embedding(monkeypatch, kill)
    with pytest.raises(Killed):
        tasks.fill_new_spaces()
    assert models_of(collection) == (DEFAULT, ENGLISH)

    tasks.fill_new_spaces()

    assert models_of(collection) == (ENGLISH, None)


def test_demo_documents_keep_the_default_model(db: Any):
    demo_users.create_demo_users(lambda: PASSWORD)
    assert demo_documents.load_demo_documents()
    collection = Collection.objects.get()
    process_queue(max_leases=3)

    assert models_of(collection) == (DEFAULT, None) and collection.embedding_model_choice == DEFAULT
