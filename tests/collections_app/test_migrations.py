"""Rows that were stored before a migration are correct after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.models import User
from collections_app.models import Collection, EmbeddingSpace, Version
from tests.collections_app import library
from tests.collections_app.http.calls import SEARCH_PATH, make_key_caller

BEFORE_0006 = [("collections_app", "0005_overlap_at_most_half")]
MODELS = (Collection, EmbeddingSpace, Version)

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def at_migration(target: Any) -> Iterator[Any]:
    """Migrates back to `target` and yields its models; applies the later migrations at the end of the block."""
    executor = MigrationExecutor(connection)
    executor.migrate(target)
    try:
        yield executor.loader.project_state(target).apps
    finally:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())


def column_names() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name || '.' || column_name FROM information_schema.columns")
        return {name for (name,) in cursor.fetchall()}


def stored_rows() -> dict[str, list[Any]]:
    return {model.__name__: list(model.objects.order_by("pk").values()) for model in MODELS}


@pytest.mark.parametrize(
    ("configured_dimensions", "requesting_models"),
    [(None, set()), (64, {"hosted", "other"})],
    ids=["dimensions are not requested", "dimensions are requested"],
)
def test_older_spaces_request_dimensions_if_the_setting_did(
    configured_dimensions: int | None, requesting_models: set[str], carl: User, settings: Any
):
    collection = library.make_library_collection("manuals")
    library.add_document(collection)
    settings.EMBEDDING = {**settings.EMBEDDING, "dimensions": configured_dimensions}
    Collection.objects.update(next_space=None)  # the model for English is due
    rows_before = stored_rows()
    with at_migration(BEFORE_0006) as apps:
        later_columns = {
            "embedding_space.asks_dimensions",
            "document_collection.reembed_after",
            "document_version.embedded_to",
        }
        assert not later_columns & column_names()
        space_model = apps.get_model("collections_app", "EmbeddingSpace")
        for name in ("hosted", "other"):
            space_model.objects.create(provider="openai", model=name, dimensions=64)
        space_model.objects.create(provider="retired", model="hosted", dimensions=64)
        # A collection that is changing to one of these spaces.
        target_space = space_model.objects.get(model="other")
        apps.get_model("collections_app", "Collection").objects.filter(pk=collection.pk).update(next_space=target_space)

    assert {space.model for space in EmbeddingSpace.objects.filter(asks_dimensions=True)} == requesting_models
    assert not EmbeddingSpace.objects.exclude(provider="openai").filter(asks_dimensions=True).exists()
    collection.refresh_from_db()
    assert (collection.next_space, collection.reembed_after) == (EmbeddingSpace.objects.get(model="other"), 0)
    Collection.objects.update(next_space=None)
    EmbeddingSpace.objects.filter(dimensions=64).delete()
    rows_after = stored_rows()
    for row in rows_after["Version"]:
        assert row["embedded_to"] == {}
        assert row["load_settings"] == ""
        # A stored language is the former one of the collection; this document has none.
        assert row["text_configuration"] == ""
        for name in ("embedded_to", "text_configuration", "load_settings"):
            row[name] = rows_before["Version"][0][name]
    assert rows_after == rows_before
    passages = make_key_caller(carl).get(SEARCH_PATH, collection_names="manuals", query="toner").json()
    assert passages and "toner" in passages[0]["page_content"]


BEFORE_0010 = [("collections_app", "0009_a_guessed_language_is_known")]
GERMAN = "Die Drucker im dritten Stock haben kein Papier mehr, und es ist auch nicht mehr viel Toner in den Schränken. "


@pytest.mark.parametrize("is_guessed", [True, False])
def test_words_of_older_collections_are_still_found(is_guessed: bool, carl: User):
    collection = library.make_library_collection("manuals")
    # Words as they were stored, without their language.
    Collection.objects.update(text_configuration="english", unmarked_configuration="english")
    library.add_document(collection.refreshed(), "The printers are on the third floor, and they have no toner. ")
    with at_migration(BEFORE_0010) as apps:
        collection_manager = apps.get_model("collections_app", "Collection").objects
        collection_manager.update(text_configuration="english", is_language_guessed=is_guessed)
        # The number of chunks, and three words; words in a language were not counted.
        with connection.cursor() as cursor:
            cursor.execute(
                "DELETE FROM term_count WHERE term <> 0 AND term NOT IN (SELECT unnest(terms) FROM chunk_words)"
            )

    assert collection.refreshed().text_configuration == ("" if is_guessed else "english")
    assert Version.objects.get().text_configuration == "english"
    library.add_document(collection.refreshed(), GERMAN)
    parameters = {"collection_names": "manuals", "mode": "text"}
    for query in ("printer", "Schrank" if is_guessed else "printers"):
        passages = make_key_caller(carl).get(SEARCH_PATH, query=query, **parameters).json()
        assert len(passages) == 1, query
