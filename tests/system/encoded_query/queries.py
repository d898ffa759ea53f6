"""Generates queries: trees that the parser can return, and texts from pieces of the language."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from system.encoded_query import (
    ALIASES,
    METADATA,
    OPERATORS,
    REFUSED_OPERATORS,
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

# Pieces that have a meaning in the language, for use in random texts.
SYNTAX_PIECES = [
    *"^(){}@,=<>!%_\\.' \n",
    "^OR",
    "^NQ",
    "^EQ",
    "^ORDERBY",
    "}}",
    "javascript",
    "STANCEOF",
    "NOT",
    "OR 1=1--",
]
STORABLE_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x00")


def _is_text(text: str) -> bool:
    return text != "" and not text.lstrip().lower().startswith("javascript:")


def text_strategy() -> SearchStrategy[str]:
    piece_strategy = st.sampled_from(SYNTAX_PIECES) | st.text(STORABLE_CHARACTERS, max_size=3)
    return st.lists(piece_strategy, min_size=1, max_size=6).map("".join).filter(_is_text)


def call_strategy() -> SearchStrategy[str]:
    return st.sampled_from(["javascript:gs.getUserID()", "javascript:gs.daysAgo(-3)", "javascript:gs.endOfToday()"])


def instant_strategy() -> SearchStrategy[str]:
    return st.dates().map(str) | st.datetimes().map(lambda instant: instant.isoformat(sep=" "))


def name_strategy(dialect: Dialect) -> SearchStrategy[str]:
    if dialect is METADATA:
        return (
            st.text(STORABLE_CHARACTERS, min_size=1, max_size=8)
            | text_strategy()
            | st.sampled_from(["docType", "planB", "ID", "a"])
        )
    return st.sampled_from(["a", "b2", "sys_id", "x_", "short_description", "desc", "or", "z" * 63])


def path_strategy(dialect: Dialect) -> SearchStrategy[Path]:
    dot_walked_path = st.lists(name_strategy(dialect), min_size=1, max_size=1 + dialect.max_hops).map(tuple)
    return st.tuples(name_strategy(dialect)) | dot_walked_path


def path_text_strategy(dialect: Dialect) -> SearchStrategy[str]:
    write_name: Callable[[str], str] = quote if dialect.allows_quoted_names else str
    return path_strategy(dialect).map(lambda path: ".".join(write_name(name) for name in path))


def without_characters(excluded_characters: str, strategy: SearchStrategy[str]) -> SearchStrategy[str]:
    return strategy.map(lambda text: text.translate(dict.fromkeys(map(ord, excluded_characters)))).filter(_is_text)


def length_strategy(prefix: SearchStrategy[str], units: list[str]) -> SearchStrategy[str]:
    count_strategy = st.integers(0, 1_000).map(str)
    return st.tuples(prefix, st.sampled_from(list(Unit)), st.sampled_from(units), count_strategy).map("@".join)


def value_strategy(operator: Operator, dialect: Dialect) -> SearchStrategy[str]:
    date_parts = st.sampled_from(operator.numbers).map(str) if operator.numbers else st.nothing()
    bounds = instant_strategy() | st.just("javascript:gs.endOfToday()")
    return {
        ValueKind.NONE: st.just(""),
        ValueKind.TEXT: text_strategy() | call_strategy(),
        ValueKind.LIST: st.lists(
            without_characters(",", text_strategy()) | call_strategy(), min_size=1, max_size=4
        ).map(",".join),
        ValueKind.RANGE: st.tuples(
            without_characters("@", text_strategy()) | call_strategy(), without_characters("@", text_strategy())
        ).map("@".join),
        ValueKind.PATH: path_text_strategy(dialect),
        ValueKind.DAY: instant_strategy()
        | st.tuples(without_characters("@", text_strategy()), bounds, bounds).map("@".join),
        ValueKind.DATE_PART: date_parts,
        ValueKind.RELATIVE: length_strategy(st.just(""), ["ago", "ahead"]),
        ValueKind.DISTANCE: length_strategy(path_text_strategy(dialect), ["before", "after"]),
        ValueKind.DYNAMIC: st.sampled_from(["me", "my_groups", "my_roles"]),
        ValueKind.WORDS: text_strategy().filter(lambda text: any(map(str.isalnum, text))),
        ValueKind.TABLE: st.sampled_from(["task", "a", "u_1"]),
    }[operator.kind]


def condition_strategy(dialect: Dialect) -> SearchStrategy[Condition]:
    def conditions_of(operator: Operator) -> SearchStrategy[Condition]:
        path = st.just(operator.only_path) if operator.only_path else path_strategy(dialect)
        return st.builds(Condition, path, st.just(operator.name), value_strategy(operator, dialect))

    return st.one_of([conditions_of(operator) for operator in OPERATORS.values()])


def group_strategy(factors: SearchStrategy[Condition | SubQuery]) -> SearchStrategy[tuple[Group, ...]]:
    terms = st.lists(factors, min_size=1, max_size=3).map(lambda factor_list: Term(tuple(factor_list)))
    group = st.lists(terms, min_size=1, max_size=3).map(lambda term_list: Group(tuple(term_list)))
    return st.lists(group, min_size=1, max_size=2).map(tuple)


def query_strategy(dialect: Dialect) -> SearchStrategy[Query]:
    """Every query that `parse` can return in this dialect, except very long ones."""
    factors: SearchStrategy[Condition | SubQuery] = st.recursive(
        condition_strategy(dialect), lambda inner: group_strategy(inner).map(SubQuery), max_leaves=6
    )
    sort_keys = st.lists(st.builds(OrderBy, path_strategy(dialect), st.booleans()), max_size=3).map(tuple)
    return st.builds(Query, group_strategy(factors) | st.just(()), sort_keys)


CONDITION_TEXTS = [
    "a=1", "b_c.dLIKEx", "nameISEMPTY", "a=", "numberIN1,2", "tBETWEEN1@2", "tONx@2024-01-01@2024-01-02", "a={x^y}",
    "tRELATIVEGT@day@ago@1", "tMORETHANo.t@day@before@3", "uDYNAMICme", "tMONTH_IS5", "sys_idINSTANCEOFtask",
    "sys_idAREx y", "aSAMEASb.c", "u=javascript:gs.getUserID()", "t>javascript:gs.daysAgo(1)", "(a=1", "b=2)", "a=)",
]  # fmt: skip
TEXT_TOKENS = [
    *OPERATORS, *ALIASES, *REFUSED_OPERATORS, *SYNTAX_PIECES, *CONDITION_TEXTS, *"ab1\t", "sys_id", "a.b.c", "DESC",
    "javascript:gs.daysAgo(1)", "javascript:", "gs.", "@day@before@3", "me", "\x00", "\ud800", "Ж", "\U0001f600",
    "docType", "{ID}", "2024-02-30",
]  # fmt: skip


def random_text(random: Random) -> str:
    """Pieces of the language in any order, or valid conditions with random changes."""
    if random.random() < 0.5:
        return "".join(random.choices(TEXT_TOKENS, k=random.randint(1, 8)))
    text = "".join(
        random.choice(CONDITION_TEXTS) + random.choice(["^", "^OR", "^NQ", "^ORDERBYa^"])
        for _ in range(random.randint(1, 5))
    )
    for _ in range(random.randint(0, 2)):
        position = random.randrange(len(text))
        text = text[:position] + random.choice(TEXT_TOKENS) + text[position + random.randint(0, 2) :]
    return text + random.choice(["a=1", "^EQ", ""])
