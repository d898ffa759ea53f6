"""The states of documents after provider faults and refusals."""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from collections_app import embed
from collections_app.embed.spaces import shared_breaker
from collections_app.ingest import worker
from collections_app.models import Collection, Version
from tests.collections_app.builders import make_collection
from tests.collections_app.http.calls import LOAD_TEXT_PATH, error_of, make_key_caller
from tests.collections_app.ingest.world import end_pauses, process_queue, store_document
from tests.providers import behaviours
from tests.providers.embedding import EmbeddingServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def remote_collection(configure_provider: Callable[..., None]) -> Collection:
    return make_collection("remote")


def load_text(collection: Collection, text: bytes = b"One text.") -> Version:
    return worker.process_in_request(store_document(collection, text, takes_lease=True))


def process_again() -> None:
    end_pauses()
    embed.reset_providers()
    process_queue()


def drop_vectors(response: Any) -> Any:
    return {**response, "data": []}


def lengthen_vectors(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [1.0] * 9} for item in response["data"]]}


def insert_nan(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [float("nan")] * 8} for item in response["data"]]}


FAULTS = {"wrong_count": drop_vectors, "wrong_dimensions": lengthen_vectors, "not_finite": insert_nan}


@pytest.mark.parametrize("code", FAULTS)
def test_provider_failure_fails_no_document_and_is_reported(
    code: str, remote_collection: Collection, embedding_server: EmbeddingServer
):  # C30
    embedding_server.serve(embedding_server.changed_response(FAULTS[code]))
    version = load_text(remote_collection)
    for _ in range(7):
        assert (version.state, version.error_code, version.attempt) == ("embedding", code, 0)
        assert version.error
        process_again()
        version.refresh_from_db()

    embedding_server.behave_correctly()
    process_again()
    assert Version.objects.values_list("state", "error", "error_code").get() == ("ready", "", "")


def test_changed_model_fails_no_document(remote_collection: Collection, embedding_server: EmbeddingServer):  # C31
    load_text(remote_collection)
    embedding_server.model_generation = 1
    embed.reset_providers()
    version = load_text(remote_collection, b"Another text.")

    assert (version.state, version.error_code, version.attempt) == ("embedding", "model_changed", 0)


def test_provider_is_paused_and_other_documents_show_the_reason(
    remote_collection: Collection, embedding_server: EmbeddingServer
):
    embedding_server.serve(embedding_server.changed_response(drop_vectors))
    load_text(remote_collection)
    assert 4 < shared_breaker(remote_collection.space_id).pause_left_s <= 5
    request_count = len(embedding_server.requests)
    other_version = load_text(remote_collection, b"Another text.")

    assert len(embedding_server.requests) == request_count
    assert (other_version.state, other_version.error_code) == ("embedding", "wrong_count")
    assert "0 vectors" in other_version.error


def test_refused_text_counts_as_an_attempt_and_does_not_delay_other_documents(
    remote_collection: Collection, embedding_server: EmbeddingServer
):
    load_text(remote_collection)
    embedding_server.max_text_length = 80  # the probe is cached
    refused_version = load_text(remote_collection, b"A word. " * 12)
    assert (refused_version.error_code, refused_version.attempt) == ("provider_refused", 1)
    assert load_text(remote_collection, b"Short.").state == "ready"
    for _ in range(4):
        end_pauses()
        process_queue()

    refused_version.refresh_from_db()
    assert (refused_version.state, refused_version.error_code) == ("failed", "provider_refused")


def test_provider_that_refuses_everything_is_misconfigured(
    remote_collection: Collection, embedding_server: EmbeddingServer
):
    embedding_server.serve(behaviours.responds_with({}, 400))
    version = load_text(remote_collection)

    assert (version.state, version.error_code, version.attempt) == ("embedding", "embedding_misconfigured", 0)
    assert "SVC_EMBEDDING_DIMENSIONS" in version.error


def test_load_into_a_new_collection_is_stored_or_refused_with_503(
    configure_provider: Callable[..., None], embedding_server: EmbeddingServer, carl: User
):
    caller = make_key_caller(carl)
    embedding_server.serve(behaviours.responds_with({}, 400))
    refusal = caller.post(LOAD_TEXT_PATH, {"text": "One text."}, collection_name="first")
    assert error_of(refusal) == (503, "embedding_misconfigured", None)
    assert (Collection.objects.count(), Version.objects.count()) == (0, 0)

    embedding_server.behave_correctly()
    assert caller.post(LOAD_TEXT_PATH, {"text": "One text."}, collection_name="first").status_code == 201
    embed.reset_providers()
    embedding_server.serve(behaviours.responds_with({}, 400))
    response = caller.post(LOAD_TEXT_PATH, {"text": "One text."}, collection_name="second")
    assert (response.status_code, response.json()["document_status"]) == (202, "embedding")
