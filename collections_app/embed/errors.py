"""What can come of asking for vectors, other than vectors.

    ServiceError
    ├── EmbeddingUnavailable   503  away, slow, over its rate, or set up wrongly: the same texts may be asked for again
    └── EmbeddingRefused       422  nothing is stored: the texts are refused (`is_of_the_texts`), or the answer is bad

Their sentences are ours: what a provider says can quote its key or a text.
"""

from __future__ import annotations

from system.errors import Invalid, Unavailable


class EmbeddingUnavailable(Unavailable):
    """`retry_after_s` is what the provider asked for, or None."""

    is_of_the_texts = False
    code = "embedding_unavailable"
    message = "The embedding provider does not answer just now."


class EmbeddingMisconfigured(EmbeddingUnavailable):
    """Waits for the operator: asking again within the same call is of no use."""

    code = "embedding_misconfigured"


class EmbeddingRefused(Invalid):
    """`code` says which rule was broken."""

    OF_THE_TEXTS = "provider_refused"

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message, code=code)

    @property
    def is_of_the_texts(self) -> bool:
        """Otherwise the provider is at fault: other texts fare no better, and these may pass when it is mended."""
        return self.code == self.OF_THE_TEXTS
