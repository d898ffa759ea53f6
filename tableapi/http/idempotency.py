"""In charge of `Idempotency-Key`: a request that is sent again gets the answer of the first time."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.http import HttpResponse
from django.utils import timezone
from rest_framework.request import Request as HttpRequest

from system.errors import BadRequest, Conflict, ServiceError
from system.http.error_responses import error_response
from tableapi.models import IdempotentAnswer

KEPT_FOR = timedelta(hours=24)
LONGEST_KEY = 255
KEPT_HEADERS = ("Location", "ETag", "X-Ignored-Fields", "X-Ignored-Parameters")
# Not the fault of what was sent: the next try may go well.
TRANSIENT = frozenset({401, 408, 429})


class IdempotencyKeyReused(Conflict):
    code = "idempotency_mismatch"


class RequestInProgress(Conflict):
    code = "idempotency_in_progress"
    message = "A request with this Idempotency-Key is being answered now; send it again shortly."


def answer_once(request: HttpRequest, caller: str, make: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer of `make`, or the one that was given to the same request before; both in one transaction with the
    write, so that a crash leaves neither."""
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return make()
    if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        said = f"An Idempotency-Key has 1 to {LONGEST_KEY} visible characters."
        raise BadRequest(said, code="invalid_parameter", field="Idempotency-Key")
    # The path by its hash: a long one does not fit into the index.
    path = hashlib.sha256(request.path.encode()).hexdigest()
    named: dict[str, Any] = {"caller": caller, "method": str(request.method), "path": path, "key": key}
    # Of these roles: a key for fewer of them, or somebody who lost one, must not get what the others were answered.
    user: Any = request.user
    given = (request.META["QUERY_STRING"], request.headers.get("If-Match", ""), *sorted(user.role_names))
    asked = "?".join(("", *given))
    body_hash = hashlib.sha256(request._request.body + asked.encode()).hexdigest()
    with transaction.atomic():
        _take(named)
        kept = IdempotentAnswer.objects.filter(**named, created_at__gt=timezone.now() - KEPT_FOR).first()
        if kept is not None:
            return _again(kept, body_hash)
        response = _made(make)
        if response.status_code < 500 and response.status_code not in TRANSIENT:
            _keep(named, body_hash, response)
        return response


def _take(named: dict[str, Any]) -> None:
    """Only one of two at once; the other is told, and does not wait."""
    number = int.from_bytes(hashlib.sha256("\0".join(named.values()).encode()).digest()[:8], "big", signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        if not cursor.fetchone()[0]:
            raise RequestInProgress


def _made(make: Callable[[], HttpResponse]) -> HttpResponse:
    try:
        with transaction.atomic():
            return make()
    except ServiceError as error:
        return error_response(error)


def _again(kept: IdempotentAnswer, body_hash: str) -> HttpResponse:
    if kept.body_hash != body_hash:
        raise IdempotencyKeyReused("This Idempotency-Key was used for another request; send a new one.")
    response = HttpResponse(kept.body, status=kept.status, content_type="application/json")
    for name, value in kept.headers.items():
        response[name] = value
    return response


def _keep(named: dict[str, Any], body_hash: str, response: HttpResponse) -> None:
    headers = {name: response[name] for name in KEPT_HEADERS if name in response}
    values = {
        "body_hash": body_hash,
        "status": response.status_code,
        "body": response.content.decode(),
        "headers": headers,
        "created_at": timezone.now(),
    }
    IdempotentAnswer.objects.update_or_create(**named, defaults=values)


def forget_old() -> int:
    """What nobody will ask for again."""
    count, _ = IdempotentAnswer.objects.filter(created_at__lte=timezone.now() - KEPT_FOR).delete()
    return count
