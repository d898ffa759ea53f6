"""Limits for tests, with less time than in production, and the outcome of reading a file."""

import re
from typing import Any

from collections_app.extract import ExtractionLimits, ExtractionResult, UnreadableFile, extract

TEST_LIMITS = {"max_pages": 5000, "max_cells": 500_000, "max_characters": 20_000_000, "cpu_s": 6, "wall_s": 20.0}
# The beginning of every /etc/passwd.
LEAKED_PASSWD_LINE = re.compile(r"root:.?:0:0")


def limits_for_tests(**changed_limits: Any) -> ExtractionLimits:
    return ExtractionLimits(**{**TEST_LIMITS, **changed_limits})


def outcome_of(data: bytes, format: str, allowed: ExtractionLimits) -> str:
    """ "text", or the error code."""
    refusal: UnreadableFile | None = None
    try:
        check_outcome(extract(data, format, allowed), allowed)
    except UnreadableFile as error:
        refusal = error
    assert refusal is None or (refusal.message.endswith(".") and len(refusal.message) < 200)
    return refusal.code if refusal else "text"


def check_outcome(result: ExtractionResult, allowed: ExtractionLimits) -> None:
    assert len(result.text) <= allowed.max_characters
    assert not LEAKED_PASSWD_LINE.search(result.text)
    assert result.text == "" or result.text.strip()
    result.text.encode()
    assert "\0" not in result.text
    assert all(0 <= heading.offset < len(result.text) for heading in result.headings)
    assert len(result.page_starts or ()) <= allowed.max_pages
