"""Each space uses its own provider and model; a changed model is detected."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from structlog.testing import capture_logs

from collections_app import embed
from collections_app.embed import EmbeddingMisconfigured, EmbeddingRefused, EmbeddingUnavailable, spaces
from collections_app.models import EmbeddingSpace
from tests.providers import behaviours
from tests.providers.embedding import EmbeddingServer

pytestmark = pytest.mark.django_db


@pytest.fixture
def expire_probe_cache(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Expires the cached result of the probe."""
    monkeypatch.setattr(spaces, "MODEL_CHECK_INTERVAL_S", -1.0)
    return embed.reset_providers


def shorten_vectors(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [1.0] * 7} for item in response["data"]]}


def zero_vectors(response: Any) -> Any:
    return {**response, "data": [{**item, "embedding": [0.0] * 8} for item in response["data"]]}


FAULTS = {
    "refuses": (lambda server: behaviours.responds_with({}, 400), "embedding_misconfigured"),
    "zeros": (lambda server: server.changed_response(zero_vectors), "embedding_unavailable"),
}


class TestDefault:
    def test_default_is_the_local_model(self):
        space = embed.default_space()

        assert (space.provider, space.model, space.dimensions) == ("local", "wordllama-l2-supercat", 256)
        assert embed.default_space() == space
        assert len(embed.Embedder(space).embed_query("hello")) == 256

    def test_settings_choose_another_provider(self, configure_provider: Any, embedding_server: EmbeddingServer):
        configure_provider(dimensions=4)
        space = embed.default_space()

        assert (space.provider, space.model, space.dimensions) == ("openai", "model-a", 4)
        assert embedding_server.requests == [], "no request is needed"
        assert embed.Embedder(space).embed_query("one") == pytest.approx(embedding_server.vector("one", 4))
        assert embedding_server.requests[-1]["dimensions"] == 4

    def test_unset_dimensions_are_requested_once(self, configure_provider: Any, embedding_server: EmbeddingServer):
        assert [embed.default_space().dimensions, embed.default_space().dimensions] == [8, 8]
        assert len(embedding_server.requests) == 1
        assert "dimensions" not in embedding_server.requests[0]

    def test_last_known_dimensions_are_used_while_the_provider_is_unavailable(
        self, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        embedding_server.serve(behaviours.responds_with_error(500))
        with pytest.raises(EmbeddingUnavailable):
            embed.default_space()
        embedding_server.behave_correctly()
        space = embed.default_space()
        embed.reset_providers()
        embedding_server.serve(behaviours.responds_with_error(500))

        assert embed.default_space() == space

    @pytest.mark.parametrize("fault", FAULTS)
    def test_faulty_provider_counts_as_unavailable(
        self, fault: str, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        behaviour, code = FAULTS[fault]
        embedding_server.serve(behaviour(embedding_server))
        with pytest.raises(EmbeddingUnavailable) as exc_info, capture_logs() as log_entries:
            embed.default_space()
        assert (exc_info.value.status, exc_info.value.code) == (503, code)
        assert [entry["event"] for entry in log_entries] == ["embedding_dimensions_unknown"]
        embedding_server.behave_correctly()
        space = embed.default_space()
        embed.reset_providers()
        embedding_server.serve(behaviour(embedding_server))

        assert embed.default_space() == space

    def test_other_dimensions_are_ignored_once(self, configure_provider: Any, embedding_server: EmbeddingServer):
        space = embed.default_space()
        embed.reset_providers()
        embedding_server.serve(embedding_server.changed_response(shorten_vectors), times=1)

        assert embed.default_space() == space
        assert [embed.default_space(), EmbeddingSpace.objects.get(model="model-a")] == [space, space]

    def test_changed_dimensions_are_accepted_when_reported_again(
        self, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        embed.default_space()
        embed.reset_providers()
        embedding_server.serve(embedding_server.changed_response(shorten_vectors))

        assert embed.default_space().dimensions == 7

    def test_too_many_dimensions_are_a_misconfiguration(
        self, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        embedding_server.dimensions = 3901

        with pytest.raises(EmbeddingMisconfigured, match="3901 dimensions, but at most 3900 can be stored"):
            embed.default_space()

    def test_maximum_dimensions_can_be_stored(self, configure_provider: Any, embedding_server: EmbeddingServer):
        embedding_server.dimensions = 3900
        space = embed.default_space()
        vector = embed.Embedder(space).embed_query("one")

        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE page (vector halfvec)")
            cursor.execute("ALTER TABLE page ALTER vector SET STORAGE PLAIN")
            cursor.execute("INSERT INTO page VALUES (%s)", [str(vector)])

    def test_unknown_local_model_is_reported(self, settings: Any):
        settings.EMBEDDING = {**settings.EMBEDDING, "model": "gpt-9"}

        with pytest.raises(EmbeddingMisconfigured, match="SVC_EMBEDDING_MODEL"):
            embed.default_space()


class TestSeveralSpaces:
    def test_collection_keeps_its_space_when_the_operator_chooses_another(
        self, configure_provider: Any, embedding_server: Any
    ):
        remote_space = embed.default_space()
        embed.Embedder(remote_space).embed_documents(["one"])
        configure_provider(provider="local", model=None)
        local_space = embed.default_space()

        assert local_space.provider == "local"
        assert embed.Embedder(remote_space).embed_query("one") == pytest.approx(embedding_server.vector("one"))
        configure_provider()
        assert len(embed.Embedder(local_space).embed_query("one")) == 256

    def test_space_uses_its_own_model(self, configure_provider: Any, embedding_server: EmbeddingServer):
        old_space = embed.default_space()
        configure_provider(model="model-b")
        embed.Embedder(old_space).embed_query("one")

        assert embedding_server.requests[-1]["model"] == "model-a"

    def test_dimensions_of_a_space_stay_when_the_setting_changes(
        self, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        long_timeout = {"query_s": 5.0}
        configure_provider(long_timeout)
        full_space = embed.default_space()
        configure_provider(long_timeout, dimensions=4)
        reduced_space = embed.default_space()
        for dimensions in (None, 4, 6):
            configure_provider(long_timeout, dimensions=dimensions)
            embedding_server.requests.clear()
            assert embed.Embedder(reduced_space).embed_query("one") == pytest.approx(embedding_server.vector("one", 4))
            assert embed.Embedder(full_space).embed_query("one") == pytest.approx(embedding_server.vector("one"))
            assert [request.get("dimensions") for request in embedding_server.requests] == [4, None]

    @pytest.mark.parametrize("provider", ["openai", "local", "retired"])
    def test_space_of_a_removed_provider_is_unavailable(self, provider: str, settings: Any):
        settings.EMBEDDING = {**settings.EMBEDDING, "base_url": None, "api_key": None}
        space = EmbeddingSpace.objects.create(provider=provider, model="gone", dimensions=8)

        with pytest.raises(EmbeddingUnavailable, match="No provider is configured"):
            embed.Embedder(space).embed_query("one")
        with pytest.raises(EmbeddingUnavailable, match="No provider is configured"):
            embed.Embedder(space).embed_documents(["one"])


class TestProbe:
    def test_first_use_of_a_space_stores_a_probe_vector(
        self, configure_provider: Any, embedding_server: EmbeddingServer
    ):
        space = embed.default_space()
        assert space.probe is None
        embed.Embedder(space).embed_documents(["one"])
        space.refresh_from_db()

        assert space.probe == pytest.approx(embedding_server.vector(spaces.PROBE_TEXT))

    def test_probe_result_is_cached(self, configure_provider: Any, embedding_server: EmbeddingServer):
        space = embed.default_space()
        for _ in range(3):
            embed.Embedder(space).embed_documents(["one"])

        assert (
            len([request for request in embedding_server.requests if request["input"] == [spaces.PROBE_TEXT]]) == 2
        ), "one for dimensions and one for the probe"

    def test_changed_model_stops_loading(
        self, configure_provider: Any, embedding_server: Any, expire_probe_cache: Any
    ):  # C31
        space = embed.default_space()
        embed.Embedder(space).embed_documents(["one"])
        embedding_server.model_generation = 1
        embedding_server.requests.clear()
        expire_probe_cache()

        with pytest.raises(EmbeddingRefused, match="model has changed") as exc_info:
            embed.Embedder(space).embed_documents(["canary"])
        assert exc_info.value.code == "model_changed"
        assert [request["input"] for request in embedding_server.requests] == [[spaces.PROBE_TEXT]]

    def test_tiny_difference_counts_as_the_same_model(
        self, configure_provider: Any, embedding_server: Any, expire_probe_cache: Any
    ):
        space = embed.default_space()
        embed.Embedder(space).embed_documents(["one"])

        def change_slightly(response: Any) -> Any:
            for item in response["data"]:
                item["embedding"][0] += 0.001
            return response

        embedding_server.serve(embedding_server.changed_response(change_slightly))
        expire_probe_cache()

        assert len(embed.Embedder(space).embed_documents(["one", "two"])) == 2

    def test_model_with_changed_dimensions_is_refused(
        self, configure_provider: Any, embedding_server: Any, expire_probe_cache: Any
    ):  # C31
        space = embed.default_space()
        embed.Embedder(space).embed_documents(["one"])
        embedding_server.dimensions = 9
        expire_probe_cache()

        with pytest.raises(EmbeddingRefused, match="9 dimensions instead of 8"):
            embed.Embedder(space).embed_documents(["one"])

    def test_retired_space_allows_a_new_space_with_its_name(
        self, configure_provider: Any, embedding_server: Any, expire_probe_cache: Any
    ):
        old_space = embed.default_space()
        embed.Embedder(old_space).embed_documents(["one"])
        embedding_server.model_generation = 1
        expire_probe_cache()
        assert embed.is_model_changed(old_space)
        embed.retire_space(old_space)
        new_space = embed.default_space()

        assert new_space != old_space and new_space.model == "model-a"
        assert len(embed.Embedder(new_space).embed_documents(["one"])) == 1
        with pytest.raises(EmbeddingUnavailable):
            embed.Embedder(old_space).embed_query("one")

    def test_unchanged_model_is_kept(self, configure_provider: Any, embedding_server: Any, expire_probe_cache: Any):
        space = embed.default_space()
        embed.Embedder(space).embed_documents(["one"])
        expire_probe_cache()

        assert not embed.is_model_changed(space)
        assert embed.default_space() == space
