"""Limits for tests, with less time than in production, and the outcome of reading a file."""

import re
from typing import Any

from collections_app.extract import ExtractionLimits, ExtractionResult, UnreadableFile, extract

SOON = {"max_pages": 5000, "max_cells": 500_000, "max_characters": 20_000_000, "cpu_s": 6, "wall_s": 20.0}
# What is in /etc/passwd wherever there is one.
LEAKED = re.compile(r"root:.?:0:0")


def limits(**changed: Any) -> ExtractionLimits:
    return ExtractionLimits(**{**SOON, **changed})


def outcome(data: bytes, format: str, allowed: ExtractionLimits) -> str:
    """ "text", or the error code."""
    refused: UnreadableFile | None = None
    try:
        check(extract(data, format, allowed), allowed)
    except UnreadableFile as error:
        refused = error
    assert refused is None or (refused.message.endswith(".") and len(refused.message) < 200)
    return refused.code if refused else "text"


def check(found: ExtractionResult, allowed: ExtractionLimits) -> None:
    assert len(found.text) <= allowed.max_characters
    assert not LEAKED.search(found.text)
    assert found.text == "" or found.text.strip()
    found.text.encode()
    assert "\0" not in found.text
    assert all(0 <= heading.offset < len(found.text) for heading in found.headings)
    assert len(found.page_starts or ()) <= allowed.max_pages
