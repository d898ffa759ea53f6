"""What happens to documents if the provider is at fault, and if the documents are."""

from collections.abc import Callable
from typing import Any

import pytest

from accounts.models import User
from collections_app import embed
from collections_app.embed.spaces import circuit_breaker
from collections_app.ingest import worker
from collections_app.models import Collection, Version
from tests.collections_app.builders import make_collection
from tests.collections_app.http.calls import LOAD_TEXT, by_key, failed
from tests.collections_app.ingest.world import accept, end_pauses, work
from tests.providers import behaviours as does
from tests.providers.embedding import EmbeddingServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def remote(configured: Callable[..., None]) -> Collection:
    return make_collection("remote")


def load(collection: Collection, text: bytes = b"One text.") -> Version:
    return worker.process_in_request(accept(collection, text, takes_lease=True))


def try_again() -> None:
    end_pauses()
    embed.reset_providers()
    work()


def without_vectors(response: Any) -> Any:
    return {**response, "data": []}


def of_nine_numbers(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [1.0] * 9} for item in response["data"]]}


def not_finite(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [float("nan")] * 8} for item in response["data"]]}


FAULTS = {"wrong_count": without_vectors, "wrong_dimensions": of_nine_numbers, "not_finite": not_finite}


@pytest.mark.parametrize("code", FAULTS)
def test_provider_failure_fails_no_document_and_is_reported(
    code: str, remote: Collection, server: EmbeddingServer
):  # C30
    server.serve(server.but(FAULTS[code]))
    version = load(remote)
    for _ in range(7):
        assert (version.state, version.error_code, version.attempt) == ("embedding", code, 0)
        assert version.error
        try_again()
        version.refresh_from_db()

    server.behave()
    try_again()
    assert Version.objects.values_list("state", "error", "error_code").get() == ("ready", "", "")


def test_changed_model_fails_no_document(remote: Collection, server: EmbeddingServer):  # C31
    load(remote)
    server.model_turns = 1
    embed.reset_providers()
    version = load(remote, b"Another text.")

    assert (version.state, version.error_code, version.attempt) == ("embedding", "model_changed", 0)


def test_provider_is_paused_and_other_documents_show_the_reason(remote: Collection, server: EmbeddingServer):
    server.serve(server.but(without_vectors))
    load(remote)
    assert 4 < circuit_breaker(remote.space_id).pause_left_s <= 5
    count = len(server.requests)
    other = load(remote, b"Another text.")

    assert len(server.requests) == count
    assert (other.state, other.error_code) == ("embedding", "wrong_count")
    assert "0 vectors" in other.error


def test_refused_text_counts_as_an_attempt_and_delays_nobody(remote: Collection, server: EmbeddingServer):
    load(remote)
    server.longest_text = 80  # the probe is believed
    refused = load(remote, b"A word. " * 12)
    assert (refused.error_code, refused.attempt) == ("provider_refused", 1)
    assert load(remote, b"Short.").state == "ready"
    for _ in range(4):
        end_pauses()
        work()

    refused.refresh_from_db()
    assert (refused.state, refused.error_code) == ("failed", "provider_refused")


def test_provider_that_refuses_everything_is_misconfigured(remote: Collection, server: EmbeddingServer):
    server.serve(does.answers({}, 400))
    version = load(remote)

    assert (version.state, version.error_code, version.attempt) == ("embedding", "embedding_misconfigured", 0)
    assert "SVC_EMBEDDING_DIMENSIONS" in version.error


def test_load_into_a_new_collection_is_stored_or_503(
    configured: Callable[..., None], server: EmbeddingServer, carl: User
):
    caller = by_key(carl)
    server.serve(does.answers({}, 400))
    refused = caller.post(LOAD_TEXT, {"text": "One text."}, collection_name="first")
    assert failed(refused) == (503, "embedding_misconfigured", None)
    assert (Collection.objects.count(), Version.objects.count()) == (0, 0)

    server.behave()
    assert caller.post(LOAD_TEXT, {"text": "One text."}, collection_name="first").status_code == 201
    embed.reset_providers()
    server.serve(does.answers({}, 400))
    response = caller.post(LOAD_TEXT, {"text": "One text."}, collection_name="second")
    assert (response.status_code, response.json()["document_status"]) == (202, "embedding")
