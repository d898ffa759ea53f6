"""Generates worlds with Hypothesis: a small schema, records, rules, callers; and one world that contains everything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from system.encoded_query import Group, Moment, Query, Term, to_text
from tableapi.catalogue.definitions import (
    OPERATIONS,
    OWN_TABLE,
    READ,
    SYS_COLUMNS,
    TABLE_TABLE,
    Catalogue,
    Column,
    Rule,
    Table,
)

from .alphabets import (
    GROUP_IDS,
    ROLE_IDS,
    USER_IDS,
    Palette,
    happens,
    moment,
    palette,
    stored_value,
)
from .column_types import CHOICES, NOW, ROWS, STORED
from .queries import conditions, queries
from .world import Caller, Row, World

DESIGNED = ("alpha", "beta", "gamma", "delta")
SYSTEM = "person"
TYPES = sorted(ROWS)
# References are what most leaks go through, so there are more of them.
LIKELY_TYPES = [*TYPES, "reference", "reference", "string"]


def sys_columns(table: str, root: str, *, is_system: bool) -> dict[str, Column]:
    """The columns that the server writes; a family shares those of its root."""
    values = dict(SYS_COLUMNS)
    if not is_system:
        values[OWN_TABLE] = ("reference", TABLE_TABLE)
    return {
        name: Column(name, type_, root, name, id=f"{root}_{name}", reference=reference, read_only=True)
        for name, (type_, reference) in values.items()
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
        choices=tuple((value, f"Label {value}") for value in CHOICES) if type_ == "choice" else (),
    )


def make_catalogue(parents: dict[str, str | None], columns: dict[str, list[Column]], rules: list[Rule]) -> Catalogue:
    """The catalogue of these tables; parents come before their children."""
    lineages: dict[str, tuple[str, ...]] = {}
    tables: dict[str, Table] = {}
    for number, (name, parent) in enumerate(parents.items()):
        lineages[name] = (name, *(lineages[parent] if parent else ()))
        inherited = tables[parent].columns if parent else sys_columns(name, name, is_system=name == SYSTEM)
        tables[name] = Table(
            id=f"1500000000{number:08d}",
            name=name,
            label=name.title(),
            columns={**inherited, **{column.name: column for column in columns[name]}},
            parent=parent,
            is_system=name == SYSTEM,
            lineage=lineages[name],
        )
    for name in tables:
        family = tuple(other for other in tables if name in lineages[other])
        tables[name] = replace(tables[name], family=family)
    return Catalogue(1, tables, tuple(rules))


@st.composite
def schemas(draw: DrawFn) -> Catalogue:
    """2 to 4 designed tables, some with a parent, perhaps a system table, 2 to 6 own columns each; no rules."""
    names = list(DESIGNED[: draw(st.integers(2, 4))])
    earlier = {name: names[:place] for place, name in enumerate(names)}
    parents = {name: draw(st.sampled_from([None, *found])) for name, found in earlier.items()}
    if draw(st.booleans()):
        parents[SYSTEM] = None
    result: dict[str, set[str]] = {}
    columns: dict[str, list[Column]] = {}
    for name, parent in parents.items():
        result[name] = set(result[parent]) if parent else set()
        columns[name] = []
        for _ in range(draw(st.integers(2, 6))):
            type_ = draw(st.sampled_from(LIKELY_TYPES))
            # The same names come again in tables that are not related, which rules for any table can tell apart.
            free = next(f"{type_}_{n}" for n in range(1, 99) if f"{type_}_{n}" not in result[name])
            result[name].add(free)
            target = draw(st.sampled_from(list(parents))) if type_ in ("reference", "list") else None
            columns[name].append(make_column(name, free, type_, target, is_indexed=draw(st.booleans())))
    return make_catalogue(parents, columns, [])


@st.composite
def records(draw: DrawFn, catalogue: Catalogue) -> dict[str, dict[str, Row]]:
    """Up to five records of each table.

    Their values come of one seed: drawn one by one they would take most of the time. So Hypothesis can leave out
    records when it looks for the smallest failure, but cannot make their values simpler.
    """
    ids = {
        name: [f"17000000{place:02d}{n:08d}" for n in range(draw(st.integers(1, 6)) % 6)]
        for place, name in enumerate(catalogue.tables)
    }
    random = Random(draw(st.integers(0, 2**32 - 1)))
    result = palette(random, [sys_id for known in ids.values() for sys_id in known])
    return {
        name: {sys_id: record(random, catalogue, table, sys_id, ids, result) for sys_id in ids[name]}
        for name, table in catalogue.tables.items()
    }


def record(
    random: Random, catalogue: Catalogue, table: Table, sys_id: str, ids: dict[str, list[str]], values: Palette
) -> Row:
    row = {**server_values(table, sys_id), "sys_created_by": random.choice(USER_IDS), "sys_updated_by": None}
    for column in table.columns.values():
        target = catalogue.tables.get(column.reference or "")
        fitting = [sys_id for name in target.family for sys_id in ids[name]] if target else []
        if column.name in row:
            continue
        # Mostly a record that is there: a walk through nothing shows nothing.
        if column.type == "reference" and fitting and random.random() < 0.75:
            row[column.name] = random.choice(fitting)
        else:
            row[column.name] = stored_value(random, column, values)
    return row


def server_values(table: Table, sys_id: str) -> Row:
    own = {} if table.is_system else {OWN_TABLE: table.id}
    return {"sys_id": sys_id, "sys_created_at": NOW, "sys_updated_at": NOW, "sys_version": 1, **own}


@st.composite
def rule_sets(draw: DrawFn, world: World) -> tuple[Rule, ...]:
    """Rules that let much through, and some that do not: of every operation, level, role; broken ones among them."""
    tables = world.catalogue.tables
    made: list[Rule] = []
    for name in tables:
        # Where nothing can be read there is little to find out.
        if happens(draw, 2):
            made.append(Rule("", READ, name, "", frozenset()))
        elif not happens(draw, 8):
            made.append(draw(rules(world, READ, name, "")))
    for _ in range(draw(st.integers(0, 6))):
        table = draw(st.none() | st.sampled_from(list(tables)))
        names = {column for known in tables.values() for column in known.columns if table in (None, known.name)}
        column = draw(st.sampled_from(["", "*"]) | st.sampled_from(sorted(names)))
        made.append(draw(rules(world, draw(st.sampled_from([READ, READ, READ, *OPERATIONS])), table, column)))
    return tuple(replace(rule, id=f"rule{place}") for place, rule in enumerate(made))


@st.composite
def rules(draw: DrawFn, world: World, operation: str, table: str | None, column: str) -> Rule:
    about = world.catalogue.tables[table or draw(st.sampled_from(list(world.catalogue.tables)))]
    kind = draw(st.sampled_from(["open"] * 4 + ["condition"] * 5 + ["not query_test"]))
    condition = "nosuch=1" if kind == "not query_test" else ""
    if kind == "condition":
        only = draw(conditions(world, about, hops=1))
        condition = to_text(Query((Group((Term((only,)),)),)))
    return Rule(
        id="",
        operation=operation,
        table=table,
        column=column,
        roles=draw(st.sampled_from([(), (), (), (), ("agent",), ("clerk", "agent"), ("admin",)]).map(frozenset)),
        condition=condition,
        admin_overrides=draw(st.booleans()),
        is_broken=happens(draw, 16),
    )


@st.composite
def callers(draw: DrawFn) -> Caller:
    names = draw(st.sampled_from([(), ("agent",), ("clerk",), ("agent", "clerk"), ("admin",), ("admin", "agent")]))
    groups = draw(st.lists(st.sampled_from(GROUP_IDS), unique=True))
    return Caller(
        draw(st.sampled_from(USER_IDS)), frozenset(names), tuple(groups), tuple(ROLE_IDS[name] for name in names)
    )


@st.composite
def worlds(draw: DrawFn) -> World:
    catalogue = draw(schemas())
    lawless = World(catalogue, draw(records(catalogue)))
    return World(replace(catalogue, rules=draw(rule_sets(lawless))), lawless.rows)


@dataclass(frozen=True)
class Case:
    """One request for a list."""

    world: World
    caller: Caller
    table: str
    text: str
    moment: Moment


@st.composite
def cases(draw: DrawFn) -> Case:
    world, caller = draw(worlds()), draw(callers())
    table = draw(st.sampled_from(list(world.catalogue.tables)))
    query = draw(queries(world, world.catalogue.tables[table]))
    return Case(world, caller, table, to_text(query), moment(caller.id))


def everything() -> World:
    """One fixed world: `alpha` has two columns of each type and one of searchable text, `beta` extends it; all is open.

    The second column runs through the alphabet at another pace, so that the two meet in many ways.
    """
    names = [(type_, number) for type_ in TYPES for number in (1, 2)]
    columns = [make_column("alpha", f"{type_}_{number}", type_, "alpha") for type_, number in names]
    columns.append(make_column("alpha", "string_3", "string", is_indexed=True))
    opened = Rule("rule0", READ, None, "", frozenset())
    parents: dict[str, str | None] = {"alpha": None, "beta": "alpha"}
    catalogue = make_catalogue(parents, {"alpha": columns, "beta": [make_column("beta", "date_3", "date")]}, [opened])
    ids = [f"1700000000{n:08d}" for n in range(60)]
    values: dict[str, list[Any]] = {
        **STORED,
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
    for place, sys_id in enumerate(ids):
        table = catalogue.tables["beta" if place % 3 == 0 else "alpha"]
        row = {"sys_created_by": USER_IDS[0], "sys_updated_by": None, **server_values(table, sys_id)}
        for column in table.columns.values():
            result = ["fox", "red Fox", None] if column.name == "string_3" else values[column.type]
            pace = place if column.name.endswith("1") else place * 13 // 3
            row.setdefault(column.name, result[pace % len(result)])
        rows[table.name][sys_id] = row
    return World(catalogue, rows)


def open_caller() -> SearchStrategy[Caller]:
    """Callers without roles, for whom `everything` is open as well."""
    return callers().map(lambda caller: replace(caller, role_names=caller.role_names - {"admin"}))
