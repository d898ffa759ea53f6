"""Generates the requests that are sent to both databases of a pair."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from tableapi.catalogue.definitions import READ, Column, Table
from tests.tableapi.noninterference.pairs import COLUMN_VALUES, KIND_COLUMN, Pair, random_value
from tests.tableapi.oracle.alphabets import query_text

OPERATORS_BY_KIND: dict[str, list[str]] = {
    "text": ["=", "!=", ">", "<=", "STARTSWITH", "STARTSWITH", "LIKE", "NOTLIKE", "ENDSWITH", "IN", "NOT IN"],
    "plain": ["=", "!=", "IN", "NOT IN", ">", "<="],
    "exact": ["=", "!="],
}
# Literals for columns without stored values.
SAMPLE_VALUES = {
    "integer": "1",
    "decimal": "1.5",
    "boolean": "true",
    "date": "2024-05-31",
    "datetime": "2024-05-31 12:00:30",
}
UNARY_OPERATORS = ["ISEMPTY", "ISNOTEMPTY", "ANYTHING"]
UNKNOWN_NAMES = ["nosuch", "alpha_9", "alpha_to.nosuch", "nosuch.name"]
# A placeholder for the last ETag of the record that the caller received.
LAST_ETAG = "LAST_ETAG"
# The first id that each database generates, see `runner.STOP_CLOCK_STATEMENT`.
FIRST_CREATED_ID = "180000000000000002"


@dataclass(frozen=True)
class Step:
    """One request, followed by up to `max_pages` requests for the next pages."""

    method: str
    table: str
    sys_id: str = ""
    params: dict[str, str] = field(default_factory=dict)
    body: dict[str, Any] | None = None
    max_pages: int = 0
    headers: dict[str, str] = field(default_factory=dict)


def json_value(value: Any, column: Column) -> Any:
    """Convert a stored value to its form in a request body."""
    if value is None or column.type in ("json", "list", "boolean", "integer", "wysiwyg", "secret"):
        return value
    return query_text(value, column) or None


class ProgramGenerator:
    """Generates programs for one pair, with the names and values of both databases."""

    def __init__(self, random: Random, pair: Pair, *, fixed_columns: frozenset[str] = frozenset({KIND_COLUMN})) -> None:
        self.random = random
        self.pair = pair
        self.fixed_columns = fixed_columns  # the columns that no body changes
        self.tables = list(pair.catalogue.tables.values())
        worlds = (pair.first, pair.second)
        self.ids = {
            table.name: sorted({sys_id for world in worlds for name in table.family for sys_id in world.rows[name]})
            for table in self.tables
        }

    def random_program(self) -> list[Step]:
        steps: list[Step] = []
        for _ in range(self.random.randint(1, 6)):
            steps.append(self.random_step())
            if "Idempotency-Key" in steps[-1].headers and self.random.random() < 0.5:
                steps.append(steps[-1])
        return steps

    def random_step(self) -> Step:
        table = self.random.choice(self.tables)
        roll = self.random.random()
        if roll < (0.45 if self.pair.may_write else 0.8):
            return self.random_list_step(table)
        if not self.pair.may_write or roll < 0.55:
            headers = self.random_headers("If-None-Match")
            return Step("GET", table.name, self.random_id(table), self.output_params(table), headers=headers)
        return self.random_write_step(table)

    def random_write_step(self, table: Table) -> Step:
        """A write request with conditional headers."""
        step = replace(
            self.random_write_step_without_headers(table), headers=self.random_headers("If-Match", "Idempotency-Key")
        )
        return self.replace_ids_with_names(table, step) if step.body and self.random.random() < 0.15 else step

    def random_headers(self, *names: str) -> dict[str, str]:
        header_values = {"Idempotency-Key": ["k", "k", "l"]}
        return {
            name: self.random.choice(header_values.get(name, [LAST_ETAG, LAST_ETAG, LAST_ETAG, "*", '"1-x"']))
            for name in names
            if self.random.random() < 0.12
        }

    def replace_ids_with_names(self, table: Table, step: Step) -> Step:
        """Return the step with display values instead of ids in its body."""
        body = dict(step.body or {})
        for name in body:
            column = table.columns.get(name)
            if column is not None and column.type in ("reference", "list"):
                display_value = self.random.choice(COLUMN_VALUES["string"])
                body[name] = [display_value] if column.type == "list" and display_value else display_value
        return replace(step, body=body, params={**step.params, "sysparm_input_display_value": "1"})

    def random_write_step_without_headers(self, table: Table) -> Step:
        method = self.random.choice(["POST", "POST", "PATCH", "PATCH", "PUT", "DELETE"])
        sys_id = "" if method == "POST" else self.random_id(table)
        visible_ids = [sys_id for name, sys_id in self.pair.visible_values if name in table.family]
        if sys_id and visible_ids and self.random.random() < 0.6:
            sys_id = self.random.choice(visible_ids)
        if method == "DELETE":
            return Step(method, table.name, sys_id)
        visible_values = self.pair.visible_values.get((table.name, sys_id))
        if method == "PUT" and visible_values and self.random.random() < 0.6:
            params, body = self.output_params(table), self.round_trip_body(table, visible_values)
            return Step(method, table.name, sys_id, params, body)
        if method == "PATCH" and visible_values and self.random.random() < 0.5:
            params, body = self.output_params(table), self.guessing_body(table, sys_id, visible_values)
            return Step(method, table.name, sys_id, params, body)
        return Step(method, table.name, sys_id, self.output_params(table), self.random_body(table))

    def guessing_body(self, table: Table, sys_id: str, visible_values: dict[str, Any]) -> dict[str, Any]:
        """Return a body that guesses a hidden value, to test whether it counts as a change."""
        # A column that is hidden in every record is refused before values are compared.
        restricted_names = {rule.column for rule in self.pair.catalogue.rules if rule.operation == READ and rule.roles}
        hidden_columns = [
            column
            for name, column in table.columns.items()
            if name not in {*visible_values, *restricted_names} and not column.is_sys
        ]
        column = self.random.choice(hidden_columns or [table.columns["name"]])
        world = self.random.choice([self.pair.first, self.pair.second])
        return {column.name: json_value(world.rows[table.name][sys_id][column.name], column)}

    def round_trip_body(self, table: Table, visible_values: dict[str, Any]) -> dict[str, Any]:
        """Return a body with the values that a client has read, unchanged."""
        columns = [column for name, column in table.columns.items() if name in visible_values and not column.is_sys]
        return {column.name: json_value(visible_values[column.name], column) for column in columns}

    def random_id(self, table: Table) -> str:
        created_ids = [FIRST_CREATED_ID] if self.pair.may_write else []
        return self.random.choice([*self.ids[table.name], *self.ids[table.name], "170000000000000099", *created_ids])

    def random_body(self, table: Table) -> dict[str, Any]:
        columns = [
            column for column in table.columns.values() if not column.is_sys and column.name not in self.fixed_columns
        ]
        body: dict[str, Any] = {}
        reference_columns = [column for column in columns if column.type == "reference"]
        if reference_columns and self.random.random() < 0.5:
            columns = reference_columns
        for column in self.random.sample(columns, min(self.random.choice([1, 1, 2, 3]), len(columns))):
            body[column.name] = json_value(random_value(self.random, column), column)
        if self.random.random() < 0.08:
            body[self.random.choice(["nosuch", "sys_version", "sys_created_by"])] = self.random.choice([1, "1"])
        return body

    def random_list_step(self, table: Table) -> Step:
        params = self.output_params(table)
        query = self.random_query(table)
        if query:
            params["sysparm_query"] = query
        params["sysparm_limit"] = self.random.choice(["1", "2", "3", "20", "20"])
        if self.random.random() < 0.2:
            params["sysparm_page"] = "2"
        if self.random.random() < 0.3:
            params["sysparm_count"] = self.random.choice(["exact", "estimated"])
        return Step("GET", table.name, "", params, max_pages=self.random.choice([0, 0, 1, 3]))

    def output_params(self, table: Table) -> dict[str, str]:
        params = {}
        roll = self.random.random()
        if roll < 0.35:
            names = [self.random_field_path(table) for _ in range(self.random.randint(1, 3))]
            params["sysparm_fields"] = ",".join([*names, *(["sys_id"] * (self.random.random() < 0.5))])
        elif roll < 0.5:
            params["sysparm_view"] = self.random.choice(["some", "some", "few", "nosuch"])
        if self.random.random() < 0.5:
            params["sysparm_display_value"] = self.random.choice(["1", "all"])
        if self.random.random() < 0.4:
            params["sysparm_exclude_reference_link"] = "1"
        return params

    def random_path_and_column(self, table: Table) -> tuple[str, Column]:
        """Return a path to a column through up to two references, and the column."""
        path = ""
        for _ in range(2):
            reference_columns = [
                column
                for column in table.columns.values()
                if column.type == "reference" and column.reference in self.ids
            ]
            if not reference_columns or self.random.random() < 0.65:
                break
            reference = self.random.choice(reference_columns)
            path += f"{reference.name}."
            table = self.pair.catalogue.tables[reference.reference or ""]
        columns = [column for column in table.columns.values() if not column.is_sys]
        column = self.random.choice([*columns, *columns, table.columns["sys_id"]])
        return path + column.name, column

    def random_field_path(self, table: Table) -> str:
        return (
            self.random.choice(UNKNOWN_NAMES) if self.random.random() < 0.1 else self.random_path_and_column(table)[0]
        )

    def random_query(self, table: Table) -> str:
        query = ""
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            query += (self.random.choice(["^", "^OR", "^NQ"]) if query else "") + self.random_condition(table)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            query += f"^ORDERBY{self.random.choice(['', 'DESC'])}{self.random_field_path(table)}"
        return query.removeprefix("^")

    def random_condition(self, table: Table) -> str:
        roll = self.random.random()
        if roll < 0.05:
            return f"{self.random.choice(UNKNOWN_NAMES)}=a"
        if roll < 0.2:
            return f"sys_idARE{self.random.choice(['a', 'b', 'ab', 'red', 'fox'])}"
        if roll < 0.23:
            return f"sys_idINSTANCEOF{self.random.choice([*self.ids, 'nosuch'])}"
        path, column = self.random_path_and_column(table)
        if self.random.random() < 0.15 or column.type in ("json", "secret"):
            return path + self.random.choice(UNARY_OPERATORS)
        if self.random.random() < 0.3:
            similar_columns = [
                candidate.name
                for candidate in table.columns.values()
                if candidate.type == column.type and not candidate.is_sys
            ]
            if similar_columns:
                return f"{path}{self.random.choice(['SAMEAS', 'NSAMEAS'])}{self.random.choice(similar_columns)}"
        operator_kind = "text" if column.type in ("string", "text", "wysiwyg") and column.name != "sys_id" else "plain"
        operator_kind = (
            "exact"
            if column.type in ("boolean", "reference", "list", "choice") or column.name == "sys_id"
            else operator_kind
        )
        return path + self.random.choice(OPERATORS_BY_KIND[operator_kind]) + self.random_literal(column)

    def random_literal(self, column: Column) -> str:
        """Return a value that this column may contain in one of the databases, or its first characters."""
        if column.name == "sys_id":
            return self.random.choice(self.ids["alpha"] or ["1"])
        sample = (
            random_value(self.random, column)
            if column.type in ("reference", "list") or column.name == KIND_COLUMN
            else None
        )
        text = query_text(
            self.random.choice(COLUMN_VALUES[column.type])
            if sample is None and column.type in COLUMN_VALUES
            else sample,
            column,
        )
        text = text or SAMPLE_VALUES.get(column.type, "a")
        return (
            text[: self.random.randint(1, 2)]
            if column.type in ("string", "text", "wysiwyg") and self.random.random() < 0.4
            else text
        )
