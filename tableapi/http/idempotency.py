"""`Idempotency-Key`: a repeated request gets the response to the first one."""

import hashlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpResponse
from rest_framework.request import Request

from system.errors import Conflict, InvalidParameter, ServiceError
from system.http import django_request
from system.http.error_responses import error_response
from system.plain_sql import fetch_rows
from tableapi.models import IdempotentAnswer

IDEMPOTENCY_HEADER = "HTTP_IDEMPOTENCY_KEY"
RETENTION_PERIOD = timedelta(hours=24)
MAX_KEY_LENGTH = 255
STORED_HEADERS = ("Location", "ETag", "X-Ignored-Fields")
# Not caused by the request itself, so a retry may succeed.
TRANSIENT_STATUSES = frozenset({401, 408, 429})


def respond_once(request: Request, respond: Callable[[], HttpResponse]) -> HttpResponse:
    """Return the stored response to the same request, or call `respond` and store its response, in the same transaction
    as the write."""
    key = request.META.get(IDEMPOTENCY_HEADER)
    if key is None:
        return respond()
    options = ("", request.META["QUERY_STRING"], request.META.get("HTTP_IF_MATCH", ""))
    content = django_request(request).body, options
    return respond_once_to_key(key, request.user, str(request.method), request.path, content, respond)


def respond_once_to_key(
    key: str,
    user: Any,
    method: str,
    path: str,
    content: tuple[bytes, tuple[str, ...]],
    respond: Callable[[], HttpResponse],
) -> HttpResponse:
    if not 0 < len(key) <= MAX_KEY_LENGTH or not key.isprintable():
        message = f"An Idempotency-Key must consist of 1 to {MAX_KEY_LENGTH} printable characters."
        raise InvalidParameter(message, field="Idempotency-Key")
    identity = _identity(key, user, method, path)
    request_hash = _request_hash(user, *content)
    with transaction.atomic():
        _lock_key(identity)
        stored = IdempotentAnswer.objects.filter(**identity, created_at__gt=Now() - RETENTION_PERIOD).first()
        if stored is not None:
            return _replay(stored, request_hash)
        try:
            with transaction.atomic():
                response = respond()
        except ServiceError as error:
            response = error_response(error)
        if response.status_code < 500 and response.status_code not in TRANSIENT_STATUSES:
            _store_response(identity, request_hash, response)
        return response


def _identity(key: str, user: Any, method: str, path: str) -> dict[str, Any]:
    # The path is hashed, because a long one does not fit in the index.
    path_hash = hashlib.sha256(path.encode()).hexdigest()
    return {"caller": str(user.pk), "method": method, "path": path_hash, "key": key}


def _request_hash(user: Any, body: bytes, options: tuple[str, ...]) -> str:
    """Identifies equal requests. Includes the roles, because a caller with fewer roles must not get a response that was
    produced with more."""
    return hashlib.sha256(body + "?".join((*options, *sorted(user.role_names))).encode()).hexdigest()


def _lock_key(identity: dict[str, Any]) -> None:
    """Lock the key. A concurrent request with the same key is refused and does not wait."""
    number = int.from_bytes(hashlib.sha256("\0".join(identity.values()).encode()).digest()[:8], "big", signed=True)
    if fetch_rows("SELECT pg_try_advisory_xact_lock(%s)", [number]) != [(True,)]:
        message = "A request with this Idempotency-Key is still in progress. Retry shortly."
        raise Conflict(message, code="idempotency_in_progress")


def _replay(stored: IdempotentAnswer, request_hash: str) -> HttpResponse:
    if stored.body_hash != request_hash:
        message = "This Idempotency-Key was used for a different request. Use a new key."
        raise Conflict(message, code="idempotency_mismatch")
    return HttpResponse(stored.body, "application/json", status=stored.status, headers=stored.headers)


def _store_response(identity: dict[str, Any], request_hash: str, response: HttpResponse) -> None:
    values = {
        "body_hash": request_hash,
        "status": response.status_code,
        "body": response.content.decode(),
        "headers": {name: response[name] for name in STORED_HEADERS if name in response},
        "created_at": Now(),
    }
    IdempotentAnswer.objects.update_or_create(**identity, defaults=values)


def delete_expired() -> None:
    IdempotentAnswer.objects.filter(created_at__lte=Now() - RETENTION_PERIOD).delete()
