"""The response of a provider, read completely and within the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .strict_json import parse_json


@dataclass(frozen=True)
class Answer:
    status: int
    # `repr` must not write a token response into a log.
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case; repeated headers are joined with commas."""
    body: bytes = field(repr=False)

    def json(self) -> object:
        """The body as JSON, whatever its content type, because key sets are sent with several."""
        return parse_json(self.body)
