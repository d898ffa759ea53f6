"""Generates queries: trees that the parser can return, and texts made from pieces of the language."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from system.encoded_query import (
    ALIASES,
    METADATA,
    OPERATORS,
    REFUSED,
    Condition,
    Dialect,
    Group,
    Operator,
    OrderBy,
    Path,
    Query,
    SubQuery,
    Term,
    Unit,
    ValueKind,
)
from tests.support.query_printer import quote

# What the language gives a meaning to, so that chance finds the places where text and meaning meet.
SIGNS = [*"^(){}@,=<>!%_\\.' \n", "^OR", "^NQ", "^EQ", "^ORDERBY", "}}", "javascript", "STANCEOF", "NOT", "OR 1=1--"]
STORABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


def _is_text(text: str) -> bool:
    return text != "" and not text.lstrip().lower().startswith("javascript:")


def texts() -> SearchStrategy[str]:
    pieces = st.sampled_from(SIGNS) | st.text(STORABLE, max_size=3)
    return st.lists(pieces, min_size=1, max_size=6).map("".join).filter(_is_text)


def calls() -> SearchStrategy[str]:
    return st.sampled_from(["javascript:gs.getUserID()", "javascript:gs.daysAgo(-3)", "javascript:gs.endOfToday()"])


def instants() -> SearchStrategy[str]:
    return st.dates().map(str) | st.datetimes().map(lambda instant: instant.isoformat(sep=" "))


def names(dialect: Dialect) -> SearchStrategy[str]:
    if dialect is METADATA:
        return st.text(STORABLE, min_size=1, max_size=8) | texts() | st.sampled_from(["docType", "planB", "ID", "a"])
    return st.sampled_from(["a", "b2", "sys_id", "x_", "short_description", "desc", "or", "z" * 63])


def paths(dialect: Dialect) -> SearchStrategy[Path]:
    walked = st.lists(names(dialect), min_size=1, max_size=1 + dialect.hops).map(tuple)
    return st.tuples(names(dialect)) | walked


def written_paths(dialect: Dialect) -> SearchStrategy[str]:
    write: Callable[[str], str] = quote if dialect.allows_quoted_names else str
    return paths(dialect).map(lambda path: ".".join(write(name) for name in path))


def without(signs: str, strategy: SearchStrategy[str]) -> SearchStrategy[str]:
    return strategy.map(lambda text: "".join(letter for letter in text if letter not in signs)).filter(_is_text)


def lengths(before: SearchStrategy[str], sides: list[str]) -> SearchStrategy[str]:
    counts = st.integers(0, 1_000).map(str)
    return st.tuples(before, st.sampled_from(list(Unit)), st.sampled_from(sides), counts).map("@".join)


def values(row: Operator, dialect: Dialect) -> SearchStrategy[str]:
    parts = st.sampled_from(row.allowed).map(str) if row.allowed else st.nothing()
    edges = instants() | st.just("javascript:gs.endOfToday()")
    return {
        ValueKind.NONE: st.just(""),
        ValueKind.TEXT: texts() | calls(),
        ValueKind.LIST: st.lists(without(",", texts()) | calls(), min_size=1, max_size=4).map(",".join),
        ValueKind.RANGE: st.tuples(without("@", texts()) | calls(), without("@", texts())).map("@".join),
        ValueKind.PATH: written_paths(dialect),
        ValueKind.DAY: instants() | st.tuples(without("@", texts()), edges, edges).map("@".join),
        ValueKind.DATE_PART: parts,
        ValueKind.RELATIVE: lengths(st.just(""), ["ago", "ahead"]),
        ValueKind.DISTANCE: lengths(written_paths(dialect), ["before", "after"]),
        ValueKind.NAMED: st.sampled_from(["me", "my_groups", "my_roles"]),
        ValueKind.WORDS: texts().filter(lambda text: any(map(str.isalnum, text))),
        ValueKind.TABLE: st.sampled_from(["task", "a", "u_1"]),
    }[row.kind]


def conditions(dialect: Dialect) -> SearchStrategy[Condition]:
    def of(row: Operator) -> SearchStrategy[Condition]:
        path = st.just(row.only_path) if row.only_path else paths(dialect)
        return st.builds(Condition, path, st.just(row.name), values(row, dialect))

    return st.one_of([of(row) for row in OPERATORS.values()])


def groups(factors: SearchStrategy[Condition | SubQuery]) -> SearchStrategy[tuple[Group, ...]]:
    terms = st.lists(factors, min_size=1, max_size=3).map(lambda found: Term(tuple(found)))
    group = st.lists(terms, min_size=1, max_size=3).map(lambda found: Group(tuple(found)))
    return st.lists(group, min_size=1, max_size=2).map(tuple)


def queries(dialect: Dialect) -> SearchStrategy[Query]:
    """Every query that `parse` can give in this dialect, but for very long ones."""
    factors: SearchStrategy[Condition | SubQuery] = st.recursive(
        conditions(dialect), lambda inner: groups(inner).map(SubQuery), max_leaves=6
    )
    keys = st.lists(st.builds(OrderBy, paths(dialect), st.booleans()), max_size=3).map(tuple)
    return st.builds(Query, groups(factors) | st.just(()), keys)


CONDITIONS = [
    "a=1", "b_c.dLIKEx", "nameISEMPTY", "a=", "numberIN1,2", "tBETWEEN1@2", "tONx@2024-01-01@2024-01-02", "a={x^y}",
    "tRELATIVEGT@day@ago@1", "tMORETHANo.t@day@before@3", "uDYNAMICme", "tMONTH_IS5", "sys_idINSTANCEOFtask",
    "sys_idAREx y", "aSAMEASb.c", "u=javascript:gs.getUserID()", "t>javascript:gs.daysAgo(1)", "(a=1", "b=2)", "a=)",
]  # fmt: skip
TOKENS = [
    *OPERATORS, *ALIASES, *REFUSED, *SIGNS, *CONDITIONS, *"ab1\t", "sys_id", "a.b.c", "DESC",
    "javascript:gs.daysAgo(1)", "javascript:", "gs.", "@day@before@3", "me", "\x00", "\ud800", "Ж", "\U0001f600",
    "docType", "{ID}", "2024-02-30",
]  # fmt: skip


def jumble(random: Random) -> str:
    """Pieces of the language in any order, or conditions joined as they should be and then damaged."""
    if random.random() < 0.5:
        return "".join(random.choices(TOKENS, k=random.randint(1, 8)))
    text = "".join(
        random.choice(CONDITIONS) + random.choice(["^", "^OR", "^NQ", "^ORDERBYa^"])
        for _ in range(random.randint(1, 5))
    )
    for _ in range(random.randint(0, 2)):
        place = random.randrange(len(text))
        text = text[:place] + random.choice(TOKENS) + text[place + random.randint(0, 2) :]
    return text + random.choice(["a=1", "^EQ", ""])
