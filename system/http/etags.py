"""Reads the headers If-Match and If-None-Match."""

import re
from typing import Any

from system.errors import InvalidParameter

ANY_TAG = "*"
IF_MATCH, IF_NONE_MATCH = "HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH"
TAGS_PATTERN = re.compile(r'\s*(\*|(W/)?"[^"]*")(\s*,\s*(W/)?"[^"]*")*\s*')


def read_tags(request: Any, name: str) -> list[str]:
    """The tags in a header, without distinguishing strong and weak ones; `*` matches any."""
    return [tag.strip().removeprefix("W/") for tag in request.META.get(name, "").split(",")]


def required_tags(request: Any) -> list[str] | None:
    """The tags in If-Match; None without that header."""
    if IF_MATCH not in request.META:
        return None
    if not TAGS_PATTERN.fullmatch(request.META[IF_MATCH]):
        raise InvalidParameter("If-Match must be an ETag from an earlier response.", field="If-Match")
    return read_tags(request, IF_MATCH)
