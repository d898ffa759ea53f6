"""A provider over HTTP, and the settings for it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from collections_app import embed
from tests.providers.embedding import KEY, EmbeddingServer

# Slow responses of the test server exceed these timeouts.
SHORT_TIMEOUTS = {
    "connect_s": 0.5,
    "read_s": 0.3,
    "request_s": 0.5,
    "total_s": 1.5,
    "retry_s": 0.6,
    "first_backoff_s": 0.02,
    "query_s": 0.3,
}


@pytest.fixture
def embedding_server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer() as server:
        yield server
        embed.reset_providers()


@pytest.fixture
def configure_provider(settings: Any, embedding_server: EmbeddingServer) -> Callable[..., None]:
    """Configures the server as an operator would, and resets the state of this process."""

    def configure(limits: dict[str, Any] | None = None, **changes: Any) -> None:
        options = {"provider": "openai", "model": "model-a", "base_url": embedding_server.url, "api_key": KEY}
        settings.EMBEDDING = {
            **settings.EMBEDDING,
            **options,
            "limits": {**SHORT_TIMEOUTS, **(limits or {})},
            **changes,
        }
        embed.reset_providers()

    configure()
    return configure
