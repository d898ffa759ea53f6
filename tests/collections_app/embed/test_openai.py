"""A provider over HTTP returns all vectors correctly within the deadline, or an error is raised."""

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from collections_app import embed
from collections_app.embed import (
    EmbeddingMisconfigured,
    EmbeddingRefused,
    EmbeddingUnavailable,
    circuit_breaker,
    request,
    spaces,
)
from collections_app.models import EmbeddingSpace
from tests.providers import behaviours
from tests.providers.embedding import KEY, EmbeddingServer, JsonObject

pytestmark = pytest.mark.django_db
TEXTS = ["one", "two", "three"]


@pytest.fixture
def space(embedding_server: EmbeddingServer, configure_provider: Callable[..., None]) -> EmbeddingSpace:
    """A space whose probe is stored before the provider fails."""
    embedding_space = EmbeddingSpace.objects.create(provider="openai", model="model-a", dimensions=8)
    embed.Embedder(embedding_space).embed_documents(["first"])
    embedding_server.requests.clear()
    return embedding_space


def replace_vector(index: int, vector: Any) -> Callable[[JsonObject], JsonObject]:
    def change(response: JsonObject) -> JsonObject:
        response["data"][index]["embedding"] = vector
        return response

    return change


def reverse_items(response: JsonObject) -> JsonObject:
    return {**response, "data": response["data"][::-1]}


def drop_last(response: JsonObject) -> JsonObject:
    return {**response, "data": response["data"][:-1]}


def repeat_index(response: JsonObject) -> JsonObject:
    return {**response, "data": [{**item, "index": 0} for item in response["data"]]}


def send_headers_slowly(request: behaviours.RecordedRequest) -> None:
    request._handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    request.drip(b"x", 0.05)


INVALID_RESPONSES = {
    "wrong_dimensions": replace_vector(1, [0.1] * 7),
    "not_finite": replace_vector(2, [float("nan")] * 8),
    "zero_vector": replace_vector(0, [0.0] * 8),
    "not_numbers": replace_vector(1, "AAAA"),
    "wrong_count": drop_last,
    "wrong_order": repeat_index,
    "answer_too_large": lambda response: {**response, "filler": "x" * 200_000},
}
OUTAGES = {
    "500": behaviours.responds_with_error(500),
    "502": behaviours.responds_with({}, 502),
    "429": behaviours.responds_with_error(429),
    "HTML": behaviours.responds_with_html(),
    "HTML and 502": behaviours.responds_with_html(502),
    "truncated JSON": behaviours.responds_with(b'{"data": [{"index": 0, "embedding": [0.1, '),
    "cut off": behaviours.responds_with(b"{}", content_length="500"),
    "hangs up": behaviours.hangs_up(),
    "silent": behaviours.stays_silent(),
    "byte by byte": behaviours.sends_byte_by_byte(0.05),
    "headers byte by byte": send_headers_slowly,
    "gzip bomb": behaviours.responds_with_gzip_bomb(100_000),
    "an error with 200": behaviours.responds_with({"error": {"message": "busy"}}),
}


def test_each_text_gets_its_vector(embedding_server: EmbeddingServer, space: EmbeddingSpace):
    vectors = embed.Embedder(space).embed_documents(TEXTS)

    assert vectors == [pytest.approx(embedding_server.vector(text)) for text in TEXTS]
    assert embed.Embedder(space).embed_documents([]) == []


def test_blank_text_is_replaced(embedding_server: EmbeddingServer, space: EmbeddingSpace):
    embed.Embedder(space).embed_documents(["", "\ud800"])

    assert embedding_server.requests[0]["input"] == [".", "?"]


def test_response_in_another_order_is_sorted(embedding_server: EmbeddingServer, space: EmbeddingSpace):  # C30
    embedding_server.serve(embedding_server.changed_response(reverse_items))

    assert embed.Embedder(space).embed_documents(TEXTS) == [
        pytest.approx(embedding_server.vector(text)) for text in TEXTS
    ]


@pytest.mark.parametrize("code", INVALID_RESPONSES)
def test_one_invalid_vector_refuses_the_response(
    code: str, embedding_server: EmbeddingServer, space: EmbeddingSpace
):  # C30
    embedding_server.serve(embedding_server.changed_response(INVALID_RESPONSES[code]))

    with pytest.raises(EmbeddingRefused) as exc_info:
        embed.Embedder(space).embed_documents(TEXTS)
    assert exc_info.value.code == code
    assert len(embedding_server.requests) == 1, "a retry would not help"


def test_endless_response_is_refused(embedding_server: EmbeddingServer, space: EmbeddingSpace):  # C30
    embedding_server.serve(behaviours.sends_endless_chunks())

    with pytest.raises(EmbeddingRefused) as exc_info:
        embed.Embedder(space).embed_documents(TEXTS)
    assert exc_info.value.code == "answer_too_large"


@pytest.mark.parametrize("outage", OUTAGES)
def test_failing_provider_is_unavailable_within_the_deadline(
    outage: str, embedding_server: EmbeddingServer, space: Any
):  # C29
    embedding_server.serve(OUTAGES[outage])
    started_at = time.monotonic()

    with pytest.raises(EmbeddingUnavailable):
        embed.Embedder(space).embed_documents(TEXTS)
    assert time.monotonic() - started_at < 5


@pytest.mark.parametrize("outage", ["502", "HTML", "cut off", "hangs up"])
def test_temporary_failure_is_retried(outage: str, embedding_server: EmbeddingServer, space: EmbeddingSpace):  # C29
    embedding_server.serve(OUTAGES[outage], times=2)

    assert len(embed.Embedder(space).embed_documents(TEXTS)) == 3
    assert len(embedding_server.requests) == 3


def test_dead_provider_is_unavailable(
    embedding_server: EmbeddingServer, space: EmbeddingSpace, configure_provider: Any
):  # C29
    configure_provider(base_url="http://127.0.0.1:9/v1")

    with pytest.raises(EmbeddingUnavailable, match="failed or was interrupted"):
        embed.Embedder(space).embed_documents(TEXTS)


def test_retries_have_jitter():  # X20
    jitters = [number / 10 for number in range(11)]
    possible_waits = [{request.backoff_s(0.5, attempt, None, jitter) for jitter in jitters} for attempt in range(4)]

    assert [len(waits) for waits in possible_waits] == [11] * 4
    assert [max(waits) for waits in possible_waits] == [0.5, 1, 2, 4]
    assert [min(waits) / max(waits) for waits in possible_waits] == [0.5] * 4


def test_retry_after_is_respected(embedding_server: EmbeddingServer, space: EmbeddingSpace, configure_provider: Any):
    configure_provider(limits={"retry_s": 1.4})
    embedding_server.serve(behaviours.responds_with({}, 429, retry_after="1"), times=1)
    started_at = time.monotonic()

    assert len(embed.Embedder(space).embed_documents(TEXTS)) == 3
    assert time.monotonic() - started_at >= 1


def test_retry_after_beyond_the_deadline_is_raised(embedding_server: EmbeddingServer, space: EmbeddingSpace):
    embedding_server.serve(behaviours.responds_with({}, 429, retry_after="77"))

    with pytest.raises(EmbeddingUnavailable) as exc_info:
        embed.Embedder(space).embed_documents(TEXTS)
    assert (exc_info.value.retry_after_s, len(embedding_server.requests)) == (77, 1)


@pytest.mark.parametrize(("status", "reason"), [(401, "OPENAI_API_KEY"), (403, "key"), (404, "SVC_EMBEDDING_MODEL")])
def test_misconfiguration_is_not_retried(status: int, reason: str, embedding_server: Any, space: Any):
    embedding_server.serve(behaviours.responds_with({"error": {"message": f"wrong key {KEY}"}}, status))

    with pytest.raises(EmbeddingMisconfigured, match=reason):
        embed.Embedder(space).embed_documents(TEXTS)
    assert len(embedding_server.requests) == 1


def test_redirects_are_not_followed(embedding_server: EmbeddingServer, space: EmbeddingSpace):
    with EmbeddingServer() as other_server:
        embedding_server.serve(behaviours.redirects_to(other_server.url + "/embeddings", 307))

        with pytest.raises(EmbeddingMisconfigured, match="redirects"):
            embed.Embedder(space).embed_documents(TEXTS)
        assert other_server.requests == []


def test_too_long_text_is_refused_with_our_message(embedding_server: EmbeddingServer, space: EmbeddingSpace):
    with pytest.raises(EmbeddingRefused, match="too long for the model") as exc_info:
        embed.Embedder(space).embed_documents(["one", "canary " * 2000])

    assert exc_info.value.code == "provider_refused"
    assert "canary" not in str(exc_info.value)


def test_key_is_sent_and_never_shown(
    embedding_server: EmbeddingServer, space: Any, caplog: Any, configure_provider: Any, capfd: Any
):
    caplog.set_level(logging.DEBUG)
    embedder, secret_text = embed.Embedder(space), "-".join(["canary", "text"])
    embedder.embed_documents(TEXTS)
    provider = spaces._provider(space)
    representations = [repr(embedder), repr(vars(embedder)), repr(provider), repr(vars(provider))]
    for behaviour in (*OUTAGES.values(), behaviours.responds_with({"error": {"message": KEY}}, 400)):
        embedding_server.serve(behaviour)
        with pytest.raises((EmbeddingUnavailable, EmbeddingRefused)) as exc_info:
            embed.Embedder(space).embed_query(secret_text)
        representations += [
            "".join(traceback.format_exception(exc_info.value)),
            repr(exc_info.value),
            repr(exc_info.value.__dict__),
        ]
        configure_provider(limits={"query_s": 0.1})

    assert f"Bearer {KEY}" in embedding_server.authorization_headers
    output = "".join(capfd.readouterr())
    assert KEY not in "".join([*representations, caplog.text, output])
    assert secret_text not in "".join([*representations, output])


def test_batches_are_limited_by_number_and_characters(
    embedding_server: EmbeddingServer, space: Any, configure_provider: Any
):
    configure_provider(batch=3)
    texts = [f"text {number}" for number in range(8)] + ["x" * 7000] * 20

    vectors = embed.Embedder(space).embed_documents(texts)

    assert vectors == [pytest.approx(embedding_server.vector(text)) for text in texts]
    assert max(len(request["input"]) for request in embedding_server.requests) == 3
    configure_provider(batch=2048)
    embedding_server.requests.clear()
    embed.Embedder(space).embed_documents(["x" * 7000] * 20)
    assert max(sum(map(len, request["input"])) for request in embedding_server.requests) <= 100_000


def test_concurrency_is_limited(embedding_server: EmbeddingServer, space: Any, configure_provider: Any):
    configure_provider(batch=1, concurrency=2, limits={"read_s": 5, "request_s": 5, "total_s": 10})
    embed.Embedder(space).embed_documents(["x"])
    release = embedding_server.hold()
    embedding_server.max_running_requests = 0
    threads = [threading.Thread(target=embed.Embedder(space).embed_documents, args=[TEXTS]) for _ in range(3)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 5
    while embedding_server.running_requests < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    release.set()
    for thread in threads:
        thread.join()

    assert embedding_server.max_running_requests == 2


def test_connections_stay_open_between_requests(settings: Any, configure_provider: Any):
    with EmbeddingServer(keeps_connections_open=True) as server:
        configure_provider(base_url=server.url, batch=1, concurrency=1)
        space = embed.default_space()
        embed.Embedder(space).embed_documents(TEXTS)
        assert len(server.requests) == 5
        assert len(server.client_ports) <= 2, "one for documents; the request for dimensions may have used another"
        embed.reset_providers()


def test_closed_idle_connection_is_replaced(embedding_server: EmbeddingServer, space: Any):
    embedding_server.keeps_connections_open = True  # otherwise it may close the connection a second time
    embed.Embedder(space).embed_query("one")
    embedding_server.serve(behaviours.hangs_up(), times=1)

    assert embed.Embedder(space).embed_query("one") == pytest.approx(embedding_server.vector("one"))
    assert len(embedding_server.requests) == 3


def test_one_failed_batch_fails_all(embedding_server: EmbeddingServer, space: Any, configure_provider: Any):  # C30
    configure_provider(batch=1, concurrency=1)
    embed.Embedder(space).embed_documents(["x"])
    embedding_server.serve(embedding_server.respond_correctly, times=1)
    embedding_server.serve(embedding_server.changed_response(drop_last))

    with pytest.raises(EmbeddingRefused):
        embed.Embedder(space).embed_documents([f"text {number}" for number in range(50)])
    assert len(embedding_server.requests) < 10, "the remaining batches were not sent"
    spaces._provider_pool().document_executor.shutdown()  # wait for the running request before the test ends


def test_caller_deadline_is_respected(embedding_server: EmbeddingServer, space: Any, configure_provider: Any):
    configure_provider(limits={"read_s": 10, "request_s": 10, "total_s": 10, "retry_s": 10})
    embed.Embedder(space).embed_documents(["x"])
    embedding_server.serve(behaviours.stays_silent())
    started_at = time.monotonic()

    with pytest.raises(EmbeddingUnavailable):
        embed.Embedder(space).embed_documents(TEXTS, timeout_s=0.3)
    assert time.monotonic() - started_at < 3


class TestQueries:
    def test_query_has_its_vector(self, embedding_server: EmbeddingServer, space: EmbeddingSpace):
        assert embed.Embedder(space).embed_query("one") == pytest.approx(embedding_server.vector("one"))

    @pytest.mark.parametrize("outage", ["silent", "byte by byte", "headers byte by byte", "500"])
    def test_slow_provider_delays_a_search_only_briefly(self, outage: str, embedding_server: Any, space: Any):  # C29
        embedding_server.serve(OUTAGES[outage])
        started_at = time.monotonic()

        with pytest.raises(EmbeddingUnavailable):
            embed.Embedder(space).embed_query("one")
        assert time.monotonic() - started_at < 2
        assert len(embedding_server.requests) == 1, "a search does not retry"

    def test_dead_provider_opens_the_breaker(self, embedding_server: Any, space: Any):  # C29
        embedding_server.serve(behaviours.responds_with_error(500))
        embedder = embed.Embedder(space)
        for _ in range(10):
            with pytest.raises(EmbeddingUnavailable):
                embedder.embed_query("one")

        assert len(embedding_server.requests) == 3

    def test_recovered_provider_is_used_again(self, embedding_server: Any, space: Any, monkeypatch: Any):  # C29
        monkeypatch.setattr(circuit_breaker, "SEARCH_PAUSE_S", 0.2)
        embedding_server.serve(behaviours.responds_with_error(500))
        embedder = embed.Embedder(space)
        for _ in range(3):
            with pytest.raises(EmbeddingUnavailable):
                embedder.embed_query("one")
        embedding_server.behave_correctly()

        vector: list[float] = []
        deadline = time.monotonic() + 5
        while not vector and time.monotonic() < deadline:
            with contextlib.suppress(EmbeddingUnavailable):
                vector = embedder.embed_query("one")
            time.sleep(0.02)
        assert vector == pytest.approx(embedding_server.vector("one"))

    def test_refused_query_does_not_open_the_breaker(self, embedding_server: EmbeddingServer, space: EmbeddingSpace):
        embedder = embed.Embedder(space)
        for _ in range(5):
            with pytest.raises(EmbeddingRefused):
                embedder.embed_query("x" * 9000)

        assert embedder.embed_query("one")

    def test_searches_do_not_wait_behind_documents(self, embedding_server: Any, space: Any, configure_provider: Any):
        configure_provider(batch=1, concurrency=1, limits={"read_s": 5, "request_s": 5, "total_s": 5})
        embedder = embed.Embedder(space)
        embedder.embed_documents(["x"])
        release = embedding_server.hold()
        load_thread = threading.Thread(target=embedder.embed_documents, args=[TEXTS])
        load_thread.start()
        deadline = time.monotonic() + 5
        while not embedding_server.running_requests and time.monotonic() < deadline:
            time.sleep(0.01)
        embedding_server.serve(embedding_server.respond_correctly)

        assert embedder.embed_query("one") == pytest.approx(embedding_server.vector("one"))
        release.set()
        load_thread.join()
