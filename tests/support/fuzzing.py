"""Sends valid and invalid requests that are generated from the API description."""

from collections.abc import Callable
from typing import Any

import requests
from django.db import transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.generation import GenerationMode


def send_case(client: Client, case: Any, path: str | None = None) -> Any:
    """Sends a generated request; `path` replaces the generated path and keeps its query."""
    prepared_request: Any = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    headers: Any = {
        name: value
        for name, value in prepared_request.headers.items()
        if name.lower() not in ("authorization", "cookie")
    }
    body = prepared_request.body or b""
    _, separator, query = str(prepared_request.path_url).partition("?")
    return client.generic(
        str(prepared_request.method),
        f"{path}{separator}{query}" if path else prepared_request.path_url,
        body if isinstance(body, bytes) else body.encode(),
        content_type=headers.pop("Content-Type", "application/octet-stream"),
        headers=headers,
    )


def count_statuses(
    operation: Any, example_count: int, send: Callable[[Any], Any], status_counts: dict[int, int]
) -> None:
    """Sends generated requests of an operation, fails on a server error, and counts the statuses."""

    @settings(
        max_examples=example_count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def check_case(case: Any) -> None:
        with transaction.atomic():  # each request sees the same records
            response = send(case)
            transaction.set_rollback(True)
        assert response.status_code < 500, (case.as_curl_command(), response.content)
        status_counts[response.status_code] = status_counts.get(response.status_code, 0) + 1

    check_case()
