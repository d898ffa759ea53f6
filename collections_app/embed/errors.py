"""The errors of embedding requests.

    ServiceError
    ├── EmbeddingUnavailable   503  unreachable, slow, rate-limited or misconfigured: the request can be retried
    └── EmbeddingRefused       422  nothing is stored: texts refused (`is_about_texts`), or response invalid

The messages are our own, because a provider's messages can contain the key or a text.
"""

from system.errors import InvalidInput, Unavailable


class EmbeddingUnavailable(Unavailable):
    """`retry_after_s` is the wait that the provider requested, or None."""

    is_about_texts = False
    code = "embedding_unavailable"
    message = "The embedding provider is unavailable."


class EmbeddingMisconfigured(EmbeddingUnavailable):
    """The operator must change the configuration; retries within a call are useless."""

    code = "embedding_misconfigured"


class EmbeddingRefused(InvalidInput):
    """The provider refused the texts, or its response is invalid; `code` names the reason."""

    TEXTS_REFUSED_CODE = "provider_refused"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)

    @property
    def is_about_texts(self) -> bool:
        """Whether the texts are at fault. Otherwise the provider is, and the texts may be accepted later."""
        return self.code == self.TEXTS_REFUSED_CODE
