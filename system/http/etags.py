"""Reads If-Match and If-None-Match."""

import re
from typing import Any

from system.errors import BadRequest

ANY = "*"
TAGS = re.compile(r'\s*(\*|(W/)?"[^"]*")(\s*,\s*(W/)?"[^"]*")*\s*')


def in_header(request: Any, name: str) -> list[str]:
    """The tags, strong or weak alike; `*` is any."""
    return [word.strip().removeprefix("W/") for word in request.headers.get(name, "").split(",")]


def to_match(request: Any) -> list[str] | None:
    """Which states a change is for; None where it does not say."""
    if "If-Match" not in request.headers:
        return None
    if not TAGS.fullmatch(request.headers["If-Match"]):
        raise BadRequest("If-Match is an ETag as an answer gave it.", code="invalid_parameter", field="If-Match")
    return in_header(request, "If-Match")
