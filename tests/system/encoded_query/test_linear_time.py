"""Parsing takes linear time, counted in steps and characters instead of seconds."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, SupportsIndex

import pytest

from system.encoded_query import METADATA, RECORDS, Dialect, QueryError, dialect, grammar, operators, parse

NO_LIMITS: Any = {
    "max_conditions": 10**9, "max_list_values": 10**9, "max_sort_keys": 10**9, "max_bytes": 10**9, "max_depth": 100
}  # fmt: skip

# Repeating one of these pieces could make a parser look back or ahead repeatedly.
HOSTILE_PIECES = [
    "a=1^",
    "a=1^OR",
    "a=1^NQ",
    "a=1^ORDERBYb^",
    "(a=1)^",
    "a",
    "a.",
    "a=",
    "=",
    "x",
    "^",
    "^O",
    "^EQ",
    "(",
    ")",
    "a={",
    "a={x}^",
    "a={}}",
    "}}",
    "{",
    "NOT ",
    "aIN1,",
    "1,",
    "aIN1,2^b=^",
    "@",
    "aON@",
    "javascript:",
    "javascript:gs.",
    "javascript:gs.a(",
    "javascript:gs.now()",
    "javascript:gs.daysAgo(1)@",
    "A",
    "aB",
    "É",
]
PREFIXES = ["", "a=", "(a=", "aIN", "a={", "aBETWEEN", "aON", "aMORETHAN", "(a=1^b=", "{"]


class StepMeter:
    """Counts executed lines of the parser, and characters that C functions read for it."""

    def __init__(self) -> None:
        self.steps = 0

    def trace(self, frame: FrameType, event: str, _: object) -> Any:
        if "encoded_query" not in frame.f_code.co_filename:
            return None
        self.steps += event == "line"
        return self.trace


class MeteredText(str):
    """A text that counts the characters that each operation reads."""

    meter: StepMeter

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        piece = super().__getitem__(key)
        self.meter.steps += len(piece)
        return piece

    def find(self, *args: Any) -> int:
        index = super().find(*args)
        self.meter.steps += (len(self) if index < 0 else index) - args[1]
        return index

    def count(self, *args: Any) -> int:
        self.meter.steps += len(self)
        return super().count(*args)


class MeteredPattern:
    """A pattern that counts the matched characters. Possessive patterns never read a character twice."""

    def __init__(self, pattern: re.Pattern[str], meter: StepMeter) -> None:
        self.pattern, self.meter = pattern, meter

    def match(self, text: str, position: int = 0) -> re.Match[str] | None:
        match = self.pattern.match(text, position)
        self.meter.steps += len(match.group()) if match else 1
        return match


def count_steps(text: str, query_dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> int:
    meter = StepMeter()
    metered_text = MeteredText(text)
    metered_text.meter = meter
    with monkeypatch.context() as patch:
        patch.setattr(grammar, "_VALUE", MeteredPattern(grammar._VALUE, meter))
        patch.setattr(grammar, "_VALUE_IN_GROUP", MeteredPattern(grammar._VALUE_IN_GROUP, meter))
        patch.setattr(operators, "_OPERATOR_PATTERN", MeteredPattern(operators._OPERATOR_PATTERN, meter))
        name_pattern: Any = MeteredPattern(query_dialect.name_pattern, meter)
        query_dialect = replace(query_dialect, name_pattern=name_pattern, **NO_LIMITS)
        trace_before = sys.gettrace()
        sys.settrace(meter.trace)
        try:
            parse(metered_text, query_dialect)
        except QueryError:
            pass
        finally:
            sys.settrace(trace_before)
    return meter.steps


# B47
@pytest.mark.parametrize("query_dialect", [RECORDS, METADATA], ids=["records", "metadata"])
@pytest.mark.parametrize("prefix", PREFIXES)
def test_doubling_the_text_at_most_doubles_the_work(
    prefix: str, query_dialect: Dialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for piece in HOSTILE_PIECES:
        short_steps = count_steps(prefix + piece * 100, query_dialect, monkeypatch)
        long_steps = count_steps(prefix + piece * 200, query_dialect, monkeypatch)
        # Quadratic work would be four times as many steps.
        assert long_steps <= 2.2 * short_steps + 100, (prefix, piece, short_steps, long_steps)


# B47
def test_longest_text_costs_a_few_steps_per_character(monkeypatch: pytest.MonkeyPatch) -> None:
    for piece in HOSTILE_PIECES:
        text = (piece * 16_384)[:16_384]
        assert count_steps(text, RECORDS, monkeypatch) <= 60 * len(text), piece


# B47
def test_every_repetition_in_a_pattern_of_the_parser_is_possessive() -> None:
    patterns = [
        grammar._VALUE,
        grammar._VALUE_IN_GROUP,
        grammar._UNKNOWN_TOKEN,
        RECORDS.name_pattern,
        METADATA.name_pattern,
    ]
    for pattern in patterns:
        text_outside_classes = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", "x", pattern.pattern)
        assert re.findall(r"[*+}](?!\+)", text_outside_classes.replace("*+", "").replace("++", "")) == []
    # The alternation of operators has no repetition.
    assert re.search(r"(?<!\\)[*+{]", operators._OPERATOR_PATTERN.pattern) is None


def test_step_counter_detects_repeated_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_again(text: str, start: int, query_dialect: Dialect) -> tuple[tuple[str, ...], int]:
        _ = text[start:]
        return dialect.read_path(text, start, query_dialect)

    monkeypatch.setattr(grammar, "read_path", read_again)
    short_steps, long_steps = (count_steps("a=1^" * count, RECORDS, monkeypatch) for count in (100, 200))
    assert long_steps > 3 * short_steps
