"""Extraction limits for tests, which allow less time than in production, and checks of results."""

import re
from typing import Any

from collections_app.extract import ExtractionLimits, ExtractionResult, UnreadableFile, extract

TEST_LIMITS = {"max_pages": 5000, "max_cells": 500_000, "max_characters": 20_000_000, "cpu_s": 6, "wall_s": 20.0}
# The first line of /etc/passwd on every system.
LEAKED_PASSWD_LINE = re.compile(r"root:.?:0:0")


def limits_for_tests(**changed_limits: Any) -> ExtractionLimits:
    return ExtractionLimits(**{**TEST_LIMITS, **changed_limits})


def outcome_of(data: bytes, format: str, limits: ExtractionLimits) -> str:
    """Extracts a file and checks the result; returns "text" or the error code."""
    refusal: UnreadableFile | None = None
    try:
        check_outcome(extract(data, format, limits), limits)
    except UnreadableFile as error:
        refusal = error
    assert refusal is None or (refusal.message.endswith(".") and len(refusal.message) < 200)
    return refusal.code if refusal else "text"


def check_outcome(result: ExtractionResult, limits: ExtractionLimits) -> None:
    assert len(result.text) <= limits.max_characters
    assert not LEAKED_PASSWD_LINE.search(result.text)
    assert result.text == "" or result.text.strip()
    result.text.encode()
    assert "\0" not in result.text
    assert all(0 <= heading.offset < len(result.text) for heading in result.headings)
    assert len(result.page_starts or ()) <= limits.max_pages
