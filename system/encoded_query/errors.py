"""The error of the query language, with a message, the position and the text at that position."""

# A message quotes only this much of what the client sent.
MAX_TOKEN_LENGTH = 40


class QueryError(ValueError):
    """The text is not a valid encoded query; `position` counts characters from 0.

    >>> str(QueryError("unknown operator", position=6, token="ISNT"))
    "unknown operator at position 6: 'ISNT'"
    >>> str(QueryError("unclosed (", position=0))
    'unclosed ( at position 0'
    """

    def __init__(self, message: str, position: int = 0, token: str = "") -> None:
        self.message = message
        self.position = position
        self.token = token[:MAX_TOKEN_LENGTH]
        super().__init__(message, position, self.token)

    def __str__(self) -> str:
        token = f": {self.token!r}" if self.token else ""
        return f"{self.message} at position {self.position}{token}"
