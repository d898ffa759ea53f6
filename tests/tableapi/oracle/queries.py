"""Hypothesis strategies for queries on a schema: mostly valid, a few with an invalid condition."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from system.encoded_query import (
    OPERATORS,
    Condition,
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
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.catalogue.definitions import Column, Table

from .alphabets import draw_rarely, query_text_strategy
from .column_types import TIME_VALUES, TYPE_ROWS, WORD_VALUES
from .literals import family_of
from .world import World

# All valid pairs of operator and column type; ARE and INSTANCEOF apply to the whole record.
OPERATOR_TYPE_PAIRS = [
    (operator.name, column_type)
    for operator in OPERATORS.values()
    for column_type in (sorted(TYPE_ROWS) if operator.only_path is None else ["string"])
    if operator.only_path or COLUMN_TYPES[column_type].compare_as in operator.column_kinds
]
SORTABLE_TYPES = sorted(name for name, type_row in TYPE_ROWS.items() if type_row.is_sortable)
# Hops of the longest path → maximum number of conditions, so that no query exceeds the limit of joins.
MAX_CONDITIONS_BY_DEPTH = {0: 6, 1: 4, 2: 3, 3: 2}


@st.composite
def path_strategy(draw: DrawFn, world: World, table: Table, max_hops: int) -> tuple[Path, Column]:
    """A path from the table through at most `max_hops` references, and the column at its end."""
    names: list[str] = []
    while True:
        columns = list(table.columns.values())
        walkable_columns = [
            column for column in columns if column.type == "reference" and column.reference in world.catalogue.tables
        ]
        if len(names) == max_hops or not walkable_columns or draw_rarely(draw, 4):
            break
        reference = draw(st.sampled_from(walkable_columns))
        names.append(reference.name)
        table = world.catalogue.tables[reference.reference or ""]
    # Mostly designed columns, as system columns have few types.
    is_sys = draw_rarely(draw, 5)
    column = draw(st.sampled_from([candidate for candidate in columns if candidate.is_sys is is_sys]))
    return (*names, column.name), column


@st.composite
def condition_strategy(draw: DrawFn, world: World, table: Table, max_hops: int) -> Condition:
    """A condition whose operator and value fit the type of its column."""
    readable_paths = path_strategy(world, table, max_hops).filter(lambda path: path[1].is_readable)
    path, column = draw(readable_paths)
    operator = draw(
        st.sampled_from([operator for operator in OPERATORS.values() if operator.fits(column.compare_as, path)])
    )
    # Otherwise half of all conditions would use operators that check little.
    if operator.name in ("ANYTHING", "NOTHING", "ISEMPTY", "ISNOTEMPTY") and draw(st.booleans()):
        operator = OPERATORS["!="] if column.type != "json" else operator
    return Condition(path, operator.name, draw(value_strategy(world, table, column, operator)))


def condition_for_pair_strategy(
    world: World, table: Table, operator_type_pair: tuple[str, str]
) -> SearchStrategy[Condition]:
    """Conditions with one operator on the table's columns of one type."""
    operator_name, column_type = operator_type_pair
    operator = OPERATORS[operator_name]
    fitting_columns = [column for column in table.columns.values() if column.type == column_type]
    if operator.only_path:
        fitting_columns = [table.columns["sys_id"]]
    return st.sampled_from(fitting_columns).flatmap(
        lambda column: st.builds(
            Condition, st.just((column.name,)), st.just(operator.name), value_strategy(world, table, column, operator)
        )
    )


def value_strategy(world: World, table: Table, column: Column, operator: Operator) -> SearchStrategy[str]:
    """Texts of the kind of value that the operator takes."""
    text_strategy = query_text_strategy(world, column)
    count_strategy = st.sampled_from(["0", "1", "2", "12", "30"])
    units = st.sampled_from(list(Unit))
    times = st.sampled_from(TIME_VALUES)
    # Numbers from whole ranges would match stored values too rarely.
    numbers = (2023, 2024, 2025) if operator.name == "YEAR_IS" else (0, 1, 2, 4, 5, 11, 12, 22, 23, 30, 31, 52)
    date_parts = [number for number in numbers if number in operator.numbers]
    match operator.kind:
        case ValueKind.NONE:
            return st.just("")
        case ValueKind.TEXT if column.type == "list":
            # A function is only valid as the whole text, not as an item of a list.
            return st.lists(text_strategy.filter(lambda text: ":" not in text), min_size=1, max_size=2).map(",".join)
        case ValueKind.TEXT:
            return text_strategy
        case ValueKind.LIST:
            return st.lists(text_strategy, min_size=1, max_size=3).map(",".join)
        case ValueKind.RANGE:
            # The first @ would end the first value.
            text_without_at = text_strategy.filter(lambda text: "@" not in text)
            return st.tuples(text_without_at, text_without_at).map("@".join)
        case ValueKind.PATH:
            return other_path_strategy(world, table, column, operator)
        case ValueKind.DAY:
            return times | st.tuples(st.just("label"), times, times).map("@".join)
        case ValueKind.DATE_PART:
            return st.sampled_from(date_parts).map(str)
        case ValueKind.RELATIVE:
            return st.tuples(st.just(""), units, st.sampled_from(["ago", "ahead"]), count_strategy).map("@".join)
        case ValueKind.DISTANCE:
            other_path = other_path_strategy(world, table, column, operator)
            return st.tuples(other_path, units, st.sampled_from(["before", "after"]), count_strategy).map("@".join)
        case ValueKind.DYNAMIC:
            return st.sampled_from(["me", "my_groups", "my_roles"])
        case ValueKind.WORDS:
            return st.lists(st.sampled_from([*WORD_VALUES, "nosuch"]), min_size=1, max_size=2).map(" ".join)
        case ValueKind.TABLE:
            return st.sampled_from(list(world.catalogue.tables))


def other_path_strategy(world: World, table: Table, column: Column, operator: Operator) -> SearchStrategy[str]:
    """Paths of at most one hop to columns that this one can be compared with."""
    paths: list[tuple[Path, Column]] = [((column.name,), column) for column in table.columns.values()]
    for (name,), reference in list(paths):
        target = world.catalogue.tables.get(reference.reference or "")
        if reference.type == "reference" and target:
            paths += [((name, column.name), column) for column in target.columns.values()]
    fitting_paths = [".".join(path) for path, candidate in paths if family_of(candidate) == family_of(column)]
    # There may be no column of this family to compare with.
    return st.sampled_from(fitting_paths or ["nosuch"])


@st.composite
def query_strategy(draw: DrawFn, world: World, table: Table) -> Query:
    """A query with up to six conditions in any structure and up to two sort keys; one in twelve is invalid."""
    max_hops = draw(st.sampled_from([0, 0, 0, 1, 1, 2, 3]))
    min_size = 0 if draw_rarely(draw, 10) else 1
    conditions = condition_strategy(world, table, max_hops)
    factors = draw(st.lists(conditions, min_size=min_size, max_size=MAX_CONDITIONS_BY_DEPTH[max_hops]))
    if draw_rarely(draw, 12):
        factors.append(draw(invalid_condition_strategy(world, table)))
    sort_paths = path_strategy(world, table, max_hops).filter(lambda path: path[1].type in SORTABLE_TYPES)
    sort_keys = st.builds(OrderBy, sort_paths.map(lambda path: path[0]), st.booleans())
    order = draw(st.lists(sort_keys, max_size=1 + (not max_hops)))
    return Query(draw(group_strategy(factors)), tuple(order))


@st.composite
def group_strategy(draw: DrawFn, factors: list[Condition], *, may_nest: bool = True) -> tuple[Group, ...]:
    """The conditions in their order, joined by random operators."""
    groups: list[list[list[Condition | SubQuery]]] = []
    remaining_factors = list(factors)
    while remaining_factors:
        size = draw(st.integers(2, 3)) if may_nest and len(remaining_factors) > 2 and draw(st.booleans()) else 1
        nested_factors, remaining_factors = remaining_factors[:size], remaining_factors[size:]
        factor = nested_factors[0] if size == 1 else SubQuery(draw(group_strategy(nested_factors, may_nest=False)))
        joiner = draw(st.sampled_from(["^", "^", "^OR", "^NQ"])) if groups else "^NQ"
        if joiner == "^NQ":
            groups.append([[factor]])
        elif joiner == "^":
            groups[-1].append([factor])
        else:
            groups[-1][-1].append(factor)
    return tuple(Group(tuple(Term(tuple(term)) for term in group)) for group in groups)


@st.composite
def invalid_condition_strategy(draw: DrawFn, world: World, table: Table) -> Condition:
    """A condition that must be refused for every caller."""
    column = draw(st.sampled_from(list(table.columns.values())))
    fitting_operators = [
        operator.name for operator in OPERATORS.values() if operator.fits(column.compare_as, (column.name,))
    ]
    conditions = [Condition(("nosuch",), "ISEMPTY"), Condition((column.name, "nosuch"), "ISEMPTY")]
    if "LIKE" not in fitting_operators:
        conditions.append(Condition((column.name,), "LIKE", "a"))
    conditions += [Condition((column.name,), "=", text) for text in TYPE_ROWS[column.type].refused_texts]
    return draw(st.sampled_from(conditions))
