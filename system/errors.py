"""The errors that are returned to callers.

    ServiceError
    ├── Unauthenticated      401  no or wrong credentials
    ├── AccessDenied         403  authenticated, but not allowed
    ├── NotFound             404  missing, or not visible to this caller
    ├── BadRequest           400  the request is malformed
    │   └── InvalidParameter      a parameter or a header has an invalid value
    ├── TimedOut             408  the body did not arrive in time
    ├── Conflict             409  conflicts with stored data
    ├── CursorExpired        410  the cursor is no longer valid
    ├── LengthRequired       411  a body without Content-Length
    ├── PreconditionFailed   412  changed since the caller read it
    ├── TooLarge             413  the body exceeds its limit
    ├── QueryTooLong         414  the query string exceeds its limit
    ├── UnsupportedMediaType 415  the body has an unsupported type
    ├── InvalidInput         422  well-formed, but with invalid values
    ├── QueryTooSlow         422  a statement hit its time limit
    ├── TooManyRequests      429  too many requests or failed attempts
    └── Unavailable          503  try again later

`system.http.error_responses.error_response` turns them into responses. Messages never contain SQL, names of hidden
objects, or data that the caller did not send.
"""

from collections.abc import Sequence
from typing import ClassVar, TypeVar

# The WWW-Authenticate header of a 401.
CHALLENGE = 'Bearer realm="Servicebase", Basic realm="Servicebase", charset="UTF-8"'
# The maximum number of errors in a response; a body can contain thousands of unknown names.
MAX_ERRORS = 20


class ServiceError(Exception):
    """An error with a status, a stable code and a message for the caller."""

    status: ClassVar[int] = 400
    code: str = "bad_request"
    message: str = "The request could not be processed."

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        field: str | None = None,
        position: int | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        self.message = message or self.message
        self.code = code or self.code
        self.field = field
        self.position = position
        self.retry_after_s = retry_after_s
        # Other errors of the same request.
        self.other_errors: tuple[ServiceError, ...] = ()
        super().__init__(self.message)

    def as_items(self) -> list[dict[str, object]]:
        """This and the other errors, as the list `errors` of a response."""
        return [error.as_item() for error in (self, *self.other_errors)]

    def as_item(self) -> dict[str, object]:
        """This error as an entry of `errors` in a response."""
        item: dict[str, object] = {"message": self.message, "code": self.code}
        if self.field:
            item["field"] = self.field
        if self.position is not None:
            item["position"] = self.position
        return item


ErrorT = TypeVar("ErrorT", bound=ServiceError)


def combine_errors(errors: Sequence[ErrorT]) -> ErrorT:
    """The first error with up to MAX_ERRORS - 1 others of the same status, because a response has one status.

    >>> error = combine_errors([InvalidInput(field="a"), Conflict(), InvalidInput(field="c")])
    >>> [item["field"] for item in error.as_items()]
    ['a', 'c']
    """
    first = errors[0]
    other_errors: list[ServiceError] = [*first.other_errors]
    for error in errors[1:]:
        other_errors += [error, *error.other_errors]
    first.other_errors = tuple([error for error in other_errors if error.status == first.status][: MAX_ERRORS - 1])
    return first


class BadRequest(ServiceError):
    status = 400


class InvalidParameter(BadRequest):
    code = "invalid_parameter"


class Unauthenticated(ServiceError):
    status = 401
    code = "unauthenticated"
    message = "Authentication is required."


class AccessDenied(ServiceError):
    status = 403
    code = "access_denied"
    message = "You are not allowed to do this."


class NotFound(ServiceError):
    status = 404
    code = "not_found"
    message = "The requested URL does not exist."


class TimedOut(ServiceError):
    status = 408
    code = "body_too_slow"
    message = "The request body did not arrive in time."


class Conflict(ServiceError):
    status = 409
    code = "conflict"
    message = "The request conflicts with stored data."


class CursorExpired(ServiceError):
    status = 410
    code = "cursor_expired"
    message = "The cursor is no longer valid. Read the records again, then start the feed without a cursor."


class LengthRequired(ServiceError):
    status = 411
    code = "length_required"
    message = "A request body requires a Content-Length header."


class PreconditionFailed(ServiceError):
    status = 412
    code = "stale"
    message = "The record has changed since you read it. Read it again."


class TooLarge(ServiceError):
    status = 413
    code = "too_large"
    message = "The request body is too large."


class QueryTooLong(ServiceError):
    status = 414
    code = "query_too_long"
    message = "The query string is too long."


class UnsupportedMediaType(ServiceError):
    status = 415
    code = "unsupported_media_type"
    message = "The Content-Type header must be application/json."


class InvalidInput(ServiceError):
    status = 422
    code = "invalid_value"
    message = "A value is invalid."


class QueryTooSlow(ServiceError):
    status = 422
    code = "query_too_slow"
    message = (
        "The query took too long. Narrow the filter. Filter and sort by indexed columns. Use cursors instead of page "
        "numbers."
    )


class TooManyRequests(ServiceError):
    status = 429
    code = "too_many_requests"
    message = "Too many requests. Try again later."


class Unavailable(ServiceError):
    status = 503
    code = "unavailable"
    message = "The service is temporarily unavailable. Try again shortly."
