"""The errors that callers see.

    ServiceError
    ├── Unauthenticated      401  no or wrong credentials
    ├── AccessDenied         403  known, but not allowed
    ├── NotFound             404  missing, or not there for this caller
    ├── BadRequest           400  what was sent cannot be understood
    ├── Conflict             409  cannot be done beside what is stored
    ├── TimedOut             408  the body did not arrive in time
    ├── LengthRequired       411  a body without Content-Length
    ├── Stale                412  changed since the caller read it
    ├── TooLarge             413  a body over its limit
    ├── QueryTooLong         414  a query string over its limit
    ├── UnsupportedMedia     415  a body of another type
    ├── Invalid              422  understood, but the values are wrong
    ├── TooMany              429  too many requests or failed attempts
    └── Unavailable          503  try again later

One place turns them into an answer: `system.http.error_responses.error_response`. Messages never hold SQL, names of
hidden things or anything a person did not send.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

# Nobody mends more at once, and a body may have thousands of wrong names.
MOST_TOLD = 20


class ServiceError(Exception):
    """An error with a status, a stable code and a sentence for the caller."""

    status: ClassVar[int] = 400
    code: str = "bad_request"
    message: str = "The request cannot be answered."

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
        # What else is wrong with the same request.
        self.others: tuple[ServiceError, ...] = ()
        super().__init__(self.message)

    def as_items(self) -> list[dict[str, object]]:
        """The list `errors` of an answer."""
        return [each.as_item() for each in (self, *self.others)]

    def as_item(self) -> dict[str, object]:
        """The entry of `errors` in an answer."""
        item: dict[str, object] = {"message": self.message, "code": self.code}
        if self.field:  # a name that is empty tells nobody what it is about
            item["field"] = self.field
        if self.position is not None:
            item["position"] = self.position
        return item


Kind = TypeVar("Kind", bound=ServiceError)


def together(found: Sequence[Kind]) -> Kind:
    """The first with the others of its status, as far as they are told: an answer has one status.

    >>> [each["field"] for each in together([Invalid(field="a"), Conflict(field="b"), Invalid(field="c")]).as_items()]
    ['a', 'c']
    """
    first = found[0]
    more: list[ServiceError] = [*first.others]
    for error in found[1:]:
        more += [error, *error.others]
    first.others = tuple([each for each in more if each.status == first.status][: MOST_TOLD - 1])
    return first


class BadRequest(ServiceError):
    status = 400


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
    message = "The requested address does not exist."


class TimedOut(ServiceError):
    status = 408
    code = "body_too_slow"
    message = "The request's body did not arrive in time."


class Conflict(ServiceError):
    status = 409
    code = "conflict"
    message = "This conflicts with what is stored."


class LengthRequired(ServiceError):
    status = 411
    code = "length_required"
    message = "A body needs a Content-Length header."


class PreconditionFailed(ServiceError):
    status = 412
    code = "stale"
    message = "The record was changed since it was read. Read it again."


class TooLarge(ServiceError):
    status = 413
    code = "too_large"
    message = "The request body is too large."


class QueryTooLong(ServiceError):
    status = 414
    code = "query_too_long"
    message = "The query string is too long."


class UnsupportedMedia(ServiceError):
    status = 415
    code = "unsupported_media_type"
    message = "Send application/json."


class Invalid(ServiceError):
    status = 422
    code = "invalid_value"
    message = "A value is not valid."


class TooMany(ServiceError):
    status = 429
    code = "too_many_requests"
    message = "Too many requests. Try again later."


class Unavailable(ServiceError):
    status = 503
    code = "unavailable"
    message = "The service is temporarily unavailable. Try again shortly."
