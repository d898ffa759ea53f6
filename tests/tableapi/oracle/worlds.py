"""Hypothesis strategies for worlds (schema, records, rules) and callers, and one fixed world with all column types."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from system.encoded_query import Group, Moment, Query, Term
from tableapi.catalogue.definitions import (
    OPERATIONS,
    OWN_TABLE_COLUMN,
    READ,
    SYS_COLUMNS,
    TABLE_TABLE,
    Catalogue,
    Column,
    Rule,
    Table,
)
from tests.support.query_printer import to_text

from .alphabets import (
    GROUP_IDS,
    ROLE_IDS,
    USER_IDS,
    Palette,
    draw_rarely,
    make_moment,
    random_value,
    value_palette,
)
from .column_types import CHOICE_VALUES, NOW, STORED_VALUES, TYPE_ROWS
from .queries import condition_strategy, query_strategy
from .world import Caller, Row, World

DESIGNED_TABLES = ("alpha", "beta", "gamma", "delta")
PRODUCT_TABLE = "person"
COLUMN_TYPES = sorted(TYPE_ROWS)
# More references than other columns, as most leaks involve them.
LIKELY_TYPES = [*COLUMN_TYPES, "reference", "reference", "string"]


def sys_columns(table: str, root: str, *, is_system: bool) -> dict[str, Column]:
    """The columns that the server writes; a family shares those of its root."""
    definitions = dict(SYS_COLUMNS)
    if not is_system:
        definitions[OWN_TABLE_COLUMN] = ("reference", TABLE_TABLE, "Table")
    return {
        name: Column(name, type_, root, name, id=f"{root}_{name}", reference=reference, read_only=True)
        for name, (type_, reference, _) in definitions.items()
    }


def make_column(owner: str, name: str, type_: str, target: str | None = None, *, is_indexed: bool = False) -> Column:
    return Column(
        name,
        type_,
        owner,
        name,
        id=f"{owner}_{name}",
        reference=target if type_ in ("reference", "list") else None,
        is_indexed=is_indexed and type_ in ("string", "text", "wysiwyg"),
        choices=tuple((value, f"Label {value}") for value in CHOICE_VALUES) if type_ == "choice" else (),
    )


def make_catalogue(parents: dict[str, str | None], columns: dict[str, list[Column]], rules: list[Rule]) -> Catalogue:
    """The catalogue of these tables; parents come before their children."""
    lineages: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Table] = {}
    for number, (name, parent) in enumerate(parents.items()):
        lineages[name] = (name, *(lineages[parent] if parent else ()))
        inherited_columns = (
            tables[parent].columns if parent else sys_columns(name, name, is_system=name == PRODUCT_TABLE)
        )
        tables[name] = Table(
            id=f"1500000000{number:08d}",
            name=name,
            label=name.title(),
            columns={**inherited_columns, **{column.name: column for column in columns[name]}},
            parent=parent,
            is_system=name == PRODUCT_TABLE,
            lineage=lineages[name],
        )
    for name in tables:
        table_family = tuple(family_table for family_table in tables if name in lineages[family_table])
        tables[name] = replace(tables[name], family=table_family)
    return Catalogue(1, tables, tuple(rules))


@st.composite
def schema_strategy(draw: DrawFn) -> Catalogue:
    """2 to 4 designed tables, some with a parent, perhaps a product table, 2 to 6 own columns each; no rules."""
    names = list(DESIGNED_TABLES[: draw(st.integers(2, 4))])
    earlier_names = {name: names[:index] for index, name in enumerate(names)}
    parents = {name: draw(st.sampled_from([None, *candidates])) for name, candidates in earlier_names.items()}
    if draw(st.booleans()):
        parents[PRODUCT_TABLE] = None
    used_names: dict[str, set[str]] = {}
    columns: dict[str, list[Column]] = {}
    for name, parent in parents.items():
        used_names[name] = set(used_names[parent]) if parent else set()
        columns[name] = []
        for _ in range(draw(st.integers(2, 6))):
            type_ = draw(st.sampled_from(LIKELY_TYPES))
            # Unrelated tables have columns of the same names, so that rules for any table apply to several.
            free_name = next(
                f"{type_}_{number}" for number in range(1, 99) if f"{type_}_{number}" not in used_names[name]
            )
            used_names[name].add(free_name)
            target = draw(st.sampled_from(list(parents))) if type_ in ("reference", "list") else None
            columns[name].append(make_column(name, free_name, type_, target, is_indexed=draw(st.booleans())))
    return make_catalogue(parents, columns, [])


@st.composite
def record_strategy(draw: DrawFn, catalogue: Catalogue) -> dict[str, dict[str, Row]]:
    """Up to five records of each table.

    Their values come from one seed, as drawing them one by one would be slow. So Hypothesis can
    remove records from a failing example, but cannot simplify their values.
    """
    ids = {
        name: [f"17000000{index:02d}{number:08d}" for number in range(draw(st.integers(1, 6)) % 6)]
        for index, name in enumerate(catalogue.tables)
    }
    random = Random(draw(st.integers(0, 2**32 - 1)))
    palette = value_palette(random, [sys_id for table_ids in ids.values() for sys_id in table_ids])
    return {
        name: {sys_id: random_record(random, catalogue, table, sys_id, ids, palette) for sys_id in ids[name]}
        for name, table in catalogue.tables.items()
    }


def random_record(
    random: Random, catalogue: Catalogue, table: Table, sys_id: str, ids: dict[str, list[str]], palette: Palette
) -> Row:
    row = {**generated_values(table, sys_id), "sys_created_by": random.choice(USER_IDS), "sys_updated_by": None}
    for column in table.columns.values():
        target = catalogue.tables.get(column.reference or "")
        fitting_ids = [sys_id for name in target.family for sys_id in ids[name]] if target else []
        if column.name in row:
            continue
        # Mostly an existing record, as dot-walking through missing ones shows nothing.
        if column.type == "reference" and fitting_ids and random.random() < 0.75:
            row[column.name] = random.choice(fitting_ids)
        else:
            row[column.name] = random_value(random, column, palette)
    return row


def generated_values(table: Table, sys_id: str) -> Row:
    own_values = {} if table.is_system else {OWN_TABLE_COLUMN: table.id}
    return {"sys_id": sys_id, "sys_created_at": NOW, "sys_updated_at": NOW, "sys_version": 1, **own_values}


@st.composite
def rule_set_strategy(draw: DrawFn, world: World) -> tuple[Rule, ...]:
    """Rules of every operation, level and role, most of them permissive, some broken."""
    tables = world.catalogue.tables
    rules: list[Rule] = []
    for name in tables:
        # Most tables can be read, otherwise the tests would check little.
        if draw_rarely(draw, 2):
            rules.append(Rule("", READ, name, "", frozenset()))
        elif not draw_rarely(draw, 8):
            rules.append(draw(rule_strategy(world, READ, name, "")))
    for _ in range(draw(st.integers(0, 6))):
        table = draw(st.none() | st.sampled_from(list(tables)))
        column_names = {
            column
            for each_table in tables.values()
            for column in each_table.columns
            if table in (None, each_table.name)
        }
        column = draw(st.sampled_from(["", "*"]) | st.sampled_from(sorted(column_names)))
        rules.append(draw(rule_strategy(world, draw(st.sampled_from([READ, READ, READ, *OPERATIONS])), table, column)))
    return tuple(replace(rule, id=f"rule{index}") for index, rule in enumerate(rules))


@st.composite
def rule_strategy(draw: DrawFn, world: World, operation: str, table: str | None, column: str) -> Rule:
    rule_table = world.catalogue.tables[table or draw(st.sampled_from(list(world.catalogue.tables)))]
    condition_kind = draw(st.sampled_from(["open"] * 4 + ["condition"] * 5 + ["invalid"]))
    condition = "nosuch=1" if condition_kind == "invalid" else ""
    if condition_kind == "condition":
        rule_condition = draw(condition_strategy(world, rule_table, max_hops=1))
        condition = to_text(Query((Group((Term((rule_condition,)),)),)))
    return Rule(
        id="",
        operation=operation,
        table=table,
        column=column,
        roles=draw(st.sampled_from([(), (), (), (), ("agent",), ("clerk", "agent"), ("admin",)]).map(frozenset)),
        condition=condition,
        admin_overrides=draw(st.booleans()),
        is_broken=draw_rarely(draw, 16),
    )


@st.composite
def caller_strategy(draw: DrawFn) -> Caller:
    role_names = draw(st.sampled_from([(), ("agent",), ("clerk",), ("agent", "clerk"), ("admin",), ("admin", "agent")]))
    group_ids = draw(st.lists(st.sampled_from(GROUP_IDS), unique=True))
    role_ids = tuple(ROLE_IDS[name] for name in role_names)
    return Caller(draw(st.sampled_from(USER_IDS)), frozenset(role_names), tuple(group_ids), role_ids)


@st.composite
def world_strategy(draw: DrawFn) -> World:
    catalogue = draw(schema_strategy())
    world_without_rules = World(catalogue, draw(record_strategy(catalogue)))
    return World(replace(catalogue, rules=draw(rule_set_strategy(world_without_rules))), world_without_rules.rows)


@dataclass(frozen=True)
class RequestCase:
    """One request for a list."""

    world: World
    caller: Caller
    table: str
    text: str
    moment: Moment


@st.composite
def request_case_strategy(draw: DrawFn) -> RequestCase:
    world, caller = draw(world_strategy()), draw(caller_strategy())
    table = draw(st.sampled_from(list(world.catalogue.tables)))
    query = draw(query_strategy(world, world.catalogue.tables[table]))
    return RequestCase(world, caller, table, to_text(query), make_moment(caller.id))


def full_world() -> World:
    """One fixed world: `alpha` has two columns of each type and one of searchable text; `beta` extends it.

    The second column has the values in another order, so that many combinations occur.
    """
    columns = [make_column("alpha", f"{type_}_{number}", type_, "alpha") for type_ in COLUMN_TYPES for number in (1, 2)]
    columns.append(make_column("alpha", "string_3", "string", is_indexed=True))
    open_rule = Rule("rule0", READ, None, "", frozenset())
    parents: dict[str, str | None] = {"alpha": None, "beta": "alpha"}
    catalogue = make_catalogue(
        parents, {"alpha": columns, "beta": [make_column("beta", "date_3", "date")]}, [open_rule]
    )
    ids = [f"1700000000{number:08d}" for number in range(60)]
    values: dict[str, list[Any]] = {
        **STORED_VALUES,
        "reference": [None, *ids[:5], *USER_IDS, *GROUP_IDS, ROLE_IDS["agent"]],
        "list": [
            None,
            [],
            [ids[0]],
            [ids[1], ids[0]],
            [ids[0], ids[1]],
            [*USER_IDS],
            [GROUP_IDS[0], ids[2]],
            [ROLE_IDS["agent"]],
        ],
    }
    rows: dict[str, dict[str, Row]] = {"alpha": {}, "beta": {}}
    for index, sys_id in enumerate(ids):
        table = catalogue.tables["beta" if index % 3 == 0 else "alpha"]
        row = {"sys_created_by": USER_IDS[0], "sys_updated_by": None, **generated_values(table, sys_id)}
        for column in table.columns.values():
            column_values = ["fox", "red Fox", None] if column.name == "string_3" else values[column.type]
            value_index = index if column.name.endswith("1") else index * 13 // 3
            row.setdefault(column.name, column_values[value_index % len(column_values)])
        rows[table.name][sys_id] = row
    return World(catalogue, rows)


def unprivileged_caller_strategy() -> SearchStrategy[Caller]:
    """Callers without the role `admin`."""
    return caller_strategy().map(lambda caller: replace(caller, role_names=caller.role_names - {"admin"}))
