"""`manage.py collections model-changed`: the provider permanently returns other vectors under the same name."""

import io
import time
from typing import Any
from unittest.mock import Mock

import pytest
from django.core.management import CommandError, call_command

from collections_app import embed
from collections_app.models import ChunkVector, Collection
from collections_app.vectors import reembedding
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.providers.behaviours import responds_with_error

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def filled_collection(configure_provider: Any, document_loader: DocumentLoader) -> Collection:
    """A collection with vectors of the former model."""
    collection = make_collection("by the provider")
    document_loader("The printer is out of toner.", target=collection)
    return collection


def run_model_changed() -> str:
    output = io.StringIO()
    call_command("collections", "model-changed", stdout=output)
    return output.getvalue()


def test_collections_are_embedded_by_the_changed_model(filled_collection: Collection, embedding_server: Any):  # C31
    former_space = filled_collection.space
    embedding_server.model_generation = 1
    embed.reset_providers()

    message = run_model_changed()

    collection_names = message.removeprefix("Re-embedding these collections: ").partition(". ")[0].split(", ")
    assert len(collection_names) == 2 and "by the provider" in collection_names
    filled_collection.refresh_from_db()
    new_space = embed.default_space()
    assert filled_collection.next_space == new_space != former_space
    reembedding.continue_reembedding(filled_collection, time.monotonic() + 60)
    filled_collection.refresh_from_db()
    assert filled_collection.space == new_space and filled_collection.next_space is None
    assert ChunkVector.objects.filter(collection=filled_collection, space=new_space).count() == 1


def test_unchanged_model_is_kept(filled_collection: Collection):
    with pytest.raises(CommandError, match="nothing to re-embed"):
        run_model_changed()

    filled_collection.refresh_from_db()
    assert filled_collection.next_space is None and filled_collection.space == embed.default_space()


def test_interrupted_model_change_continues_with_the_next_call(
    filled_collection: Collection, embedding_server: Any, monkeypatch: Any
):
    embedding_server.model_generation = 1
    embed.reset_providers()
    with monkeypatch.context() as patch:
        patch.setattr(reembedding, "start_reembedding", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run_model_changed()

    assert "by the provider" in run_model_changed()
    filled_collection.refresh_from_db()
    assert filled_collection.next_space == embed.default_space()


def test_running_reembedding_uses_the_changed_model(
    configure_provider: Any, filled_collection: Collection, embedding_server: Any
):
    former_space = filled_collection.space
    configure_provider(model="model-b")
    Collection.objects.filter(pk=filled_collection.pk).update(space=embed.default_space(), next_space=former_space)
    configure_provider(model="model-a")
    embedding_server.model_generation = 1
    embed.reset_providers()

    run_model_changed()

    filled_collection.refresh_from_db()
    assert filled_collection.next_space == embed.default_space() != former_space


def test_unavailable_provider_changes_nothing(filled_collection: Collection, embedding_server: Any):
    embedding_server.serve(responds_with_error(500))
    embed.reset_providers()

    with pytest.raises(CommandError):
        run_model_changed()

    assert embed.default_space() == filled_collection.space
