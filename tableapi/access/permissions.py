"""Decides what a caller may do: the levels of access rules, as decisions that are compiled into the SQL. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from system.encoded_query import Moment, Query, QueryError, ValueKind, parse, read
from system.errors import BadRequest
from tableapi.catalogue.definitions import OPERATIONS, READ, Catalogue, Column, Rule, Table
from tableapi.query.expressions import (
    ALWAYS,
    NEVER,
    Always,
    Case,
    ChildTablePredicate,
    Conditional,
    Decision,
    Expression,
    Predicate,
    tests_in,
)
from tableapi.query.path_resolver import ReadScope, RuleScope, expression
from tableapi.values import comparison

ADMIN = "admin"
ANY_TABLE = None
ANY_COLUMN = "*"
RECORD = ""

# "Roles, grants, rules, catalogue and properties are written by `admin` only … whatever rules say."
ONLY_ADMIN = frozenset({ADMIN})
CATALOGUE = ("sys_db_table", "sys_db_column", "sys_choice", "sys_ui_view", "sys_ui_view_column", "sys_acl")
FIXED_WRITERS: dict[str, frozenset[str]] = {
    **dict.fromkeys((*CATALOGUE, "sys_role", "sys_user_role", "sys_property"), ONLY_ADMIN),
    "oidc_setting": ONLY_ADMIN | {"sso_admin"},
    # By which they can be deleted; what is in them comes from the provider alone, so every column is read-only.
    "idp_certificate": ONLY_ADMIN | {"sso_admin"},
    # "no view, endpoint or admin page can change or delete an entry".
    "sys_deletion_log": frozenset(),
}
# "payload for admin only": it holds values of every column, rules or not.
FIXED_READERS: dict[tuple[str, str], frozenset[str]] = {("sys_deletion_log", "payload"): ONLY_ADMIN}

Level = tuple[str, str | None, str]
# What a level came to: it decides that everything, or nothing, or what meets one of the conditions.
Outcome = Always | tuple[Rule, ...]


class Permissions:
    """Everything that holders of these roles may do, worked out once and kept."""

    def __init__(self, catalogue: Catalogue, role_names: frozenset[str]) -> None:
        self.catalogue = catalogue
        self.role_names = role_names
        self.is_admin = ADMIN in role_names
        self._eyes = RuleScope(catalogue)
        self._records: dict[tuple[str, str], Decision] = {}
        self._columns: dict[tuple[str, str, str], Decision] = {}

    def records(self, operation: str, table: Table) -> Decision:
        """Which records of this table, those of tables that extend it included, the operation is allowed on."""
        key = (operation, table.name)
        if key not in self._records:
            fixed = FIXED_WRITERS.get(table.name) if operation != READ else None
            if fixed is not None:
                self._records[key] = ALWAYS if fixed & self.role_names else NEVER
            else:
                self._records[key] = self._decide(table, lambda own: self._record_outcome(operation, own))
        return self._records[key]

    def column(self, operation: str, table: Table, column: Column) -> Decision:
        """In which of those records this column is allowed."""
        key = (operation, table.name, column.name)
        if key not in self._columns:
            fixed = FIXED_READERS.get((table.name, column.name))
            if fixed is not None and not fixed & self.role_names:
                self._columns[key] = NEVER
            else:
                # Of a table whose records the caller never sees, no rule opens a column.
                self._columns[key] = self._decide(
                    table,
                    lambda own: (
                        self._column_outcome(operation, own, column.name)
                        if self._is_open(own, self._record_outcome(operation, own))
                        else ()
                    ),
                )
        return self._columns[key]

    def is_known(self, table: Table, column: Column) -> bool:
        """Whether the column exists for somebody who sends it. Who may only create sees no record: for them the rules
        of columns alone say it."""
        if self.records(READ, table) != NEVER:
            return self.column(READ, table, column) != NEVER
        fixed = FIXED_READERS.get((table.name, column.name))
        if fixed is not None and not fixed & self.role_names:
            return False
        own = (self.catalogue.tables[name] for name in table.family)
        return any(self._is_open(each, self._column_outcome(READ, each, column.name)) for each in own)

    def is_there(self, table: Table) -> bool:
        """ "A table is there for a caller who holds the roles of a rule of any operation on it." """
        return any(self.records(operation, table) != NEVER for operation in OPERATIONS)

    def _record_outcome(self, operation: str, own: Table) -> Outcome:
        found = self._first_level((operation, name, RECORD) for name in self._tables_upwards(own))
        # "Record without any rule: denied." "admin passes a level that has no rule".
        return found if found is not None else ALWAYS if self.is_admin else ()

    def _column_outcome(self, operation: str, own: Table, column: str) -> Outcome:
        names = self._tables_upwards(own)
        found = self._first_level((operation, name, each) for each in (column, ANY_COLUMN) for name in names)
        # "Column without any rule: allowed where the record is."
        return found if found is not None else ALWAYS

    def _tables_upwards(self, own: Table) -> tuple[str | None, ...]:
        return own.lineage if own.is_system else (*own.lineage, ANY_TABLE)

    def _first_level(self, levels: Iterable[Level]) -> Outcome | None:
        for level in levels:
            rules = self.catalogue.rules_by_level.get(level)
            if rules:
                return self._outcome(rules)
        return None

    def _outcome(self, rules: tuple[Rule, ...]) -> Outcome:
        if self.is_admin and any(rule.admin_overrides for rule in rules):
            return ALWAYS
        held = [rule for rule in rules if not rule.is_broken and (not rule.roles or rule.roles & self.role_names)]
        return ALWAYS if any(not rule.condition for rule in held) else tuple(held)

    def _is_open(self, own: Table, outcome: Outcome) -> bool:
        """Whether a record of this very table might pass: a rule that cannot be understood opens none."""
        return outcome == ALWAYS or any(self._fits(own, parse(rule.condition)) for rule in outcome)  # type: ignore[union-attr]

    def _decide(self, table: Table, outcome_of: object) -> Decision:
        if table.is_system and self.is_admin:
            return ALWAYS
        outcomes: dict[Outcome, list[Table]] = {}
        for name in table.family:
            own = self.catalogue.tables[name]
            outcomes.setdefault(outcome_of(own), []).append(own)  # type: ignore[operator]
        cases = [self._case(table, own, outcome, len(outcomes) == 1) for outcome, own in outcomes.items()]
        found = tuple(case for case in cases if case is not None)
        return ALWAYS if found == (Case(None, None),) else Conditional(found)

    def _case(self, table: Table, own: list[Table], outcome: Outcome, is_only: bool) -> Case | None:
        tables = None if is_only else tuple(sorted(each.id for each in own))
        if outcome == ALWAYS:
            return Case(tables, None)
        parts = tuple(self._conditions(table, own, outcome))  # type: ignore[arg-type]  # not ALWAYS
        return Case(tables, parts) if parts else None

    def _conditions(self, table: Table, own: list[Table], rules: tuple[Rule, ...]) -> Iterator[Expression]:
        for rule in rules:
            parsed = parse(rule.condition)
            if self._fits(table, parsed):
                yield self._resolved(table, parsed)
            else:
                # It asks for columns that only the extending tables have.
                yield from (
                    ChildTablePredicate(each, self._resolved(each, parsed)) for each in own if self._fits(each, parsed)
                )

    def _resolved(self, table: Table, query: Query) -> Expression:
        found = expression(self._eyes, table, query)
        assert found is not None  # a rule with an empty condition has none
        return found

    def _fits(self, table: Table, query: Query) -> bool:
        try:
            check(self._eyes, table, query)
        except (QueryError, BadRequest):
            return False  # "fails closed": a rule that cannot be understood never holds
        return True


# The id is no number and no truth value, as an imported user's may be: where it does not fit, the rule does not.
SOME_MOMENT = Moment(datetime(2000, 1, 1, tzinfo=UTC), "a1")


def check(eyes: RuleScope, table: Table, query: Query) -> None:
    """Raise for names and values that do not fit the table."""
    for test in tests(eyes, table, query):
        check_values(test)


def tests(eyes: ReadScope, table: Table, query: Query) -> Iterator[Predicate]:
    """Every condition of a query, with its columns."""
    found = expression(eyes, table, query)
    if found is not None:
        yield from tests_in(found)


def check_values(test: Predicate) -> None:
    operands = read(test.condition)
    kind = test.condition.row.kind
    if kind in (ValueKind.TEXT, ValueKind.LIST) and operands is not None:
        for operand in operands if isinstance(operands, tuple) else (operands,):
            comparison.comparable(test.leaf.column, operand, SOME_MOMENT, test.condition)  # type: ignore[arg-type]
    if kind is ValueKind.RANGE:
        for operand in (operands.low, operands.high):  # type: ignore[union-attr]  # by its kind
            comparison.comparable(test.leaf.column, operand, SOME_MOMENT, test.condition)


def check_condition(catalogue: Catalogue, table_name: str | None, text: str) -> None:
    """Raise QueryError for a condition that could not hold on records of this table; without a table, read it only."""
    query = parse(text)
    if query.order:
        raise QueryError("a rule's condition has no order", query.order[0].position, ".".join(query.order[0].path))
    if not query.groups:
        raise QueryError("a condition is expected", 0, text)
    table = catalogue.tables.get(table_name) if table_name else None
    if table is None:
        return
    try:
        check(RuleScope(catalogue), table, query)
    except BadRequest as error:
        raise QueryError(error.message.rstrip("."), error.position or 0, error.field or "") from None
