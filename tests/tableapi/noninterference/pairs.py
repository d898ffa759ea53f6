"""Generates two databases from a seed that agree on everything that a caller may read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from random import Random
from typing import Any

from system.encoded_query import Moment
from tableapi.catalogue.definitions import CREATE, DELETE, OPERATIONS, READ, WRITE, Catalogue, Column, Rule, Table
from tests.tableapi.oracle import Caller, Row, World, is_permitted, visible_rows
from tests.tableapi.oracle.alphabets import GROUP_IDS, ROLE_IDS, USER_IDS, make_moment
from tests.tableapi.oracle.column_types import NOW
from tests.tableapi.oracle.worlds import generated_values, make_catalogue, make_column

# Few values, so that most records share some.
COLUMN_VALUES: dict[str, list[Any]] = {
    "string": [None, "a", "ab", "b", "Ab c"],
    "text": [None, "a", "b", "red fox"],
    "wysiwyg": [None, "<p>a</p>", "<p>ab</p>"],
    "integer": [None, 0, 1, 2],
    "decimal": [None, Decimal(1), Decimal("1.5"), Decimal("1.50")],
    "boolean": [None, True, False],
    "date": [None, NOW.date(), NOW.date().replace(day=1)],
    "datetime": [None, NOW, NOW.replace(day=1)],
    "choice": [None, "1", "2"],
    "json": [None, {"a": 1}, {"a": 2}],
    "secret": [None, "sa", "sb"],
}
COLUMN_TYPES = [
    "string",
    "string",
    "string",
    "text",
    "wysiwyg",
    "integer",
    "decimal",
    "boolean",
    "date",
    "datetime",
    "choice",
    "json",
    "secret",
    "reference",
    "reference",
    "list",
]
# The column that rules test in databases that are written to. It cannot be changed, so no write changes permissions.
KIND_COLUMN = "kind"
MAX_ATTEMPTS = 8


# For each table and record, the values that a caller may read and the operations that are allowed.
VisibleValues = dict[tuple[str, str], dict[str, Any]]


@dataclass(frozen=True)
class Pair:
    """Two worlds with the same catalogue that look the same to this caller."""

    caller: Caller
    first: World
    second: World
    may_write: bool
    visible_values: VisibleValues

    @property
    def catalogue(self) -> Catalogue:
        return self.first.catalogue

    @property
    def has_differences(self) -> bool:
        return self.first.rows != self.second.rows


def make_pair(random: Random, *, may_write: bool | None = None) -> Pair:
    caller = Caller(random.choice(USER_IDS), frozenset(random.choice([(), ("agent",)])), (GROUP_IDS[0],))
    caller = replace(caller, role_ids=tuple(ROLE_IDS[name] for name in caller.role_names))
    if may_write is None:
        may_write = random.random() < 0.5
    catalogue = random_schema(random)
    catalogue = replace(
        catalogue, rules=random_rules(random, catalogue, may_write), views=random_views(random, catalogue)
    )
    world = World(
        catalogue, {name: random_records(random, catalogue, table) for name, table in catalogue.tables.items()}
    )
    now = make_moment(caller.id)
    visible = visible_values(world, caller, now)
    for _ in range(MAX_ATTEMPTS):
        other_world = redraw_hidden_data(random, world, visible)
        if visible_values(other_world, caller, now) == visible:
            return Pair(caller, world, other_world, may_write, visible)
    return Pair(caller, world, world, may_write, visible)


def random_schema(random: Random) -> Catalogue:
    """`alpha` refers to `beta` and to itself; `gamma` extends `alpha`."""
    parents: dict[str, str | None] = {"alpha": None, "beta": None}
    if random.random() < 0.6:
        parents["gamma"] = "alpha"
    columns: dict[str, list[Column]] = {}
    for name in parents:
        own_columns = [] if name == "gamma" else [make_column(name, KIND_COLUMN, "string"), make_name_column(name)]
        if name == "alpha":
            own_columns.append(make_column(name, "alpha_to", "reference", "beta"))
        for number in range(random.randint(2, 3)):
            type_ = random.choice(COLUMN_TYPES)
            target = random.choice(["alpha", "beta"]) if type_ in ("reference", "list") else None
            column = make_column(name, f"{name}_{number}", type_, target, is_indexed=random.random() < 0.6)
            # A deletion would reveal a mandatory reference.
            own_columns.append(replace(column, mandatory=target is None and random.random() < 0.1))
        columns[name] = own_columns
    return make_catalogue(parents, columns, [])


def make_name_column(table: str) -> Column:
    return replace(make_column(table, "name", "string"), is_display=True, is_indexed=True)


def random_rules(random: Random, catalogue: Catalogue, may_write: bool) -> tuple[Rule, ...]:
    """Return rules that hide some records and columns, always or by a condition."""
    rules: list[Rule] = []
    for name, table in catalogue.tables.items():
        if name != "gamma" or random.random() < 0.5:
            rules.append(make_rule(READ, name, "", random_condition(random, table, may_write)))
            for operation in (CREATE, WRITE, DELETE):
                if random.random() < 0.85:
                    rules.append(make_rule(operation, name, "", f"{KIND_COLUMN}!=b" if random.random() < 0.2 else ""))
        for column in table.columns.values():
            if column.is_sys or column.name == KIND_COLUMN:
                continue
            roll = random.random()
            if roll < 0.25:
                rules.append(Rule("", READ, name, column.name, frozenset({"clerk"})))
            elif roll < 0.55:
                rules.append(make_rule(READ, name, column.name, random_condition(random, table, may_write)))
            if random.random() < 0.1:
                rules.append(Rule("", WRITE, name, column.name, frozenset({"clerk"})))
    rules += [Rule("", WRITE, name, KIND_COLUMN, frozenset({"clerk"})) for name in catalogue.tables]
    return tuple(replace(rule, id=f"rule{number}") for number, rule in enumerate(rules))


def make_rule(operation: str, table: str, column: str, condition: str) -> Rule:
    return Rule("", operation, table, column, frozenset(), condition)


def random_condition(random: Random, table: Table, may_write: bool) -> str:
    roll = random.random()
    if roll < 0.25:
        return ""
    if may_write or roll < 0.6:
        return random.choice([f"{KIND_COLUMN}!=b", f"{KIND_COLUMN}=a", f"{KIND_COLUMN}ISEMPTY^OR{KIND_COLUMN}=a"])
    name = random.choice(
        [column.name for column in table.columns.values() if column.type in ("string", "integer", "choice")]
    )
    reference_names = [
        column.name for column in table.columns.values() if column.type == "reference" and column.reference == "beta"
    ]
    if reference_names and roll < 0.8:
        path = f"{random.choice(reference_names)}.{random.choice([KIND_COLUMN, 'name'])}"
        return f"{path}{random.choice(['=a', '!=b', 'ISEMPTY'])}"
    return f"{name}{random.choice(['ISEMPTY', 'ISNOTEMPTY'])}"


def random_views(random: Random, catalogue: Catalogue) -> dict[tuple[str, str], tuple[tuple[str, str], ...]]:
    views = {}
    for name, table in catalogue.tables.items():
        column_names = [column.name for column in table.columns.values()]
        sample = random.sample(column_names, min(3, len(column_names)))
        paths = [*sample, *(["alpha_to.name"] * (name != "beta"))]
        views[name, "some"] = tuple((path, "") for path in paths)
        views[name, "few"] = ((random.choice(column_names), ""),)
    return views


def random_records(random: Random, catalogue: Catalogue, table: Table, first_number: int = 0) -> dict[str, Row]:
    table_index = list(catalogue.tables).index(table.name)
    numbers = range(first_number, first_number + random.randint(2, 4))
    ids = [f"17000000{table_index:02d}{number:08d}" for number in numbers]
    return {sys_id: random_record(random, table, sys_id) for sys_id in ids}


def random_record(random: Random, table: Table, sys_id: str) -> Row:
    row = {**generated_values(table, sys_id), "sys_created_by": USER_IDS[0], "sys_updated_by": None}
    return {**row, **{name: random_value(random, column) for name, column in table.columns.items() if name not in row}}


def random_value(random: Random, column: Column) -> Any:
    if column.name == KIND_COLUMN:
        return random.choice(["a", "a", "b", "b", None])
    table_index = 0 if column.reference == "alpha" else 1
    known_ids = [f"17000000{table_index:02d}{number:08d}" for number in range(5)]
    if column.type == "reference":
        return random.choice([None, *known_ids])
    if column.type == "list":
        return random.choice([None, random.sample(known_ids, random.randint(1, 3))])
    return random.choice(COLUMN_VALUES[column.type])


def visible_values(world: World, caller: Caller, now: Moment) -> VisibleValues:
    """Return what the caller may read, except when and how often records were changed."""
    values_by_record: VisibleValues = {}
    for name, table in world.catalogue.tables.items():
        for row in visible_rows(world, caller, name, now):
            if world.own_table(table, row).name != name:
                continue
            allowed_operations = {
                f"may {operation}": is_permitted(world, caller, operation, name, row, now) for operation in OPERATIONS
            }
            values = {
                column.name: row[column.name]
                for column in table.columns.values()
                if column.is_readable and is_permitted(world, caller, READ, name, row, now, column.name)
            }
            values_by_record[name, row["sys_id"]] = {**allowed_operations, **values}
    for key in values_by_record:
        for name in ("sys_updated_at", "sys_updated_by", "sys_version"):
            values_by_record[key].pop(name, None)
    return values_by_record


def redraw_hidden_data(random: Random, world: World, visible: VisibleValues) -> World:
    """Return a world with other hidden values and other hidden records."""
    rows: dict[str, dict[str, Row]] = {}
    for name, table in world.catalogue.tables.items():
        new_rows: dict[str, Row] = {}
        for sys_id, row in world.rows[name].items():
            visible_row = visible.get((name, sys_id))
            if visible_row is not None:
                hidden_columns = [
                    column for name, column in table.columns.items() if name not in visible_row and not column.is_sys
                ]
                new_rows[sys_id] = {
                    **row,
                    **{column.name: random_value(random, column) for column in hidden_columns if random.random() < 0.8},
                }
            elif random.random() < 0.6:
                new_rows[sys_id] = random_record(random, table, sys_id) if random.random() < 0.7 else row
                new_rows[sys_id][KIND_COLUMN] = row[KIND_COLUMN]
        if random.random() < 0.5:
            for sys_id, row in random_records(random, world.catalogue, table, first_number=4).items():
                new_rows[sys_id] = {**row, KIND_COLUMN: "b"}
        rows[name] = new_rows
    return World(world.catalogue, rows)
