"""What a provider answered, read completely and within the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from .strict_json import parse_json


@dataclass(frozen=True)
class Answer:
    status: int
    # A token answer must not reach a log through `repr`.
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case; a repeated header is joined with commas."""
    body: bytes = field(repr=False)

    def json(self) -> object:
        """The body as `parse_json` reads it, whatever content type it claims (key sets come as several)."""
        return parse_json(self.body)
