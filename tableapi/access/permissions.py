"""Decides what a caller may do: evaluates access rules into decisions that the SQL applies. Pure."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from system.encoded_query import SAMPLE_MOMENT, Query, QueryError, Range, ValueKind, parse, read_value
from system.errors import BadRequest
from tableapi.catalogue.definitions import (
    CREATE,
    HIDDEN_TABLES,
    OPERATIONS,
    READ,
    WRITE,
    Catalogue,
    Column,
    Rule,
    Table,
)
from tableapi.query.expressions import (
    ALWAYS,
    NEVER,
    AlwaysAllowed,
    ChildTablePredicate,
    ConditionalDecision,
    Decision,
    DecisionCase,
    Expression,
    Predicate,
    predicates_of,
)
from tableapi.query.path_resolver import ReadScope, RuleScope, resolve_query
from tableapi.values import comparison

ADMIN = "admin"
ANY_TABLE = None
ANY_COLUMN = "*"
RECORD_LEVEL = ""

# "Roles, grants, rules, catalogue and properties are written by `admin` only … whatever rules say."
ONLY_ADMIN = frozenset({ADMIN})
CATALOGUE_TABLES = (
    "sys_db_table",
    "sys_db_column",
    "sys_choice",
    "sys_ui_view",
    "sys_ui_view_column",
    "sys_acl",
    "sys_set_on_change",
)
FIXED_WRITERS: dict[str, frozenset[str]] = {
    **dict.fromkeys((*CATALOGUE_TABLES, "sys_role", "sys_user_role", "sys_property"), ONLY_ADMIN),
    "oidc_setting": ONLY_ADMIN | {"sso_admin"},
    # These roles can delete certificates. Every column is read-only, because the provider supplies the values.
    "idp_certificate": ONLY_ADMIN | {"sso_admin"},
    # "no view, endpoint or admin page can change or delete an entry".
    "sys_deletion_log": frozenset(),
}
# "payload for admin only": it contains the values of all columns, regardless of rules.
FIXED_READERS: dict[tuple[str, str], frozenset[str]] = {("sys_deletion_log", "payload"): ONLY_ADMIN}

RuleLevel = tuple[str, str | None, str]
# The result of a level: all records, or those that match the condition of one of these rules.
LevelOutcome = AlwaysAllowed | tuple[Rule, ...]


class Basis(StrEnum):
    RULE = "the rule"
    NO_ROLE = "the user has no role of these rules"
    ADMIN = "administrators bypass rules"
    NO_RECORD_RULE = "no rule: administrators only"
    RECORD = "no column rule: follows the record"
    OWN_RULE_NEEDED = "no rule names this custom column"
    FIXED = "fixed by the product"


class Verdict(NamedTuple):
    """The outcome of the level that decides, and the rules that lead to it."""

    outcome: LevelOutcome
    basis: Basis
    rules: tuple[Rule, ...] = ()


def rule_tables(member: Table) -> tuple[str | None, ...]:
    """The tables whose rules apply to the records of exactly this table. Per level, the first with a rule decides."""
    return member.lineage if member.is_system else (*member.lineage, ANY_TABLE)


class Permissions:
    """What callers with these roles may do. Each decision is computed once and cached."""

    def __init__(self, catalogue: Catalogue, role_names: frozenset[str]) -> None:
        self.catalogue = catalogue
        self.role_names = role_names
        self.is_admin = ADMIN in role_names
        self._scope = RuleScope(catalogue)
        self._records: dict[tuple[str, str], Decision] = {}
        self._columns: dict[tuple[str, str, str], Decision] = {}

    def record_decision(self, operation: str, table: Table) -> Decision:
        """The records of this table, and of tables that extend it, on which the operation is allowed."""
        key = (operation, table.name)
        if key not in self._records:
            self._records[key] = self._decide(table, lambda member: self.record_verdict(operation, member).outcome)
        return self._records[key]

    def column_decision(self, operation: str, table: Table, column: Column) -> Decision:
        """Of the records in `record_decision`, those where the operation is also allowed on this column."""
        key = (operation, table.name, column.name)
        if key not in self._columns:
            self._columns[key] = self._decide(
                table, lambda member: self.column_verdict(operation, member, column.name).outcome
            )
        return self._columns[key]

    def decisions(self, operation: str, table: Table, columns: Iterable[Column]) -> list[Decision]:
        """The decision about the records, and one about each of the columns."""
        column_decisions = [self.column_decision(operation, table, column) for column in columns]
        return [self.record_decision(operation, table), *column_decisions]

    def can_see_column(self, table: Table, column: Column) -> bool:
        """Whether the caller may use the column in a request. If they can create but not read records, only the column
        rules decide."""
        if self.record_decision(READ, table) != NEVER:
            return self.column_decision(READ, table, column) != NEVER
        fixed_roles = FIXED_READERS.get((table.name, column.name))
        if fixed_roles is not None and not fixed_roles & self.role_names:
            return False
        family = (self.catalogue.tables[name] for name in table.family)
        return any(
            self._may_allow(member, self._column_verdict(READ, member, column.name).outcome) for member in family
        )

    def visible_column(self, table: Table, name: str) -> Column | None:
        """The column, or None for both a missing one and one that the caller may not use in a request."""
        column = table.columns.get(name)
        return column if column is not None and self.can_see_column(table, column) else None

    def can_see_table(self, table: Table) -> bool:
        """ "A table is there for a caller who holds the roles of a rule of any operation on it." """
        if table.name in HIDDEN_TABLES:
            return False
        return any(self.record_decision(operation, table) != NEVER for operation in OPERATIONS)

    def record_verdict(self, operation: str, member: Table) -> Verdict:
        """What decides about the records of exactly this table."""
        fixed_roles = FIXED_WRITERS.get(member.name) if operation != READ else None
        if operation == READ and member.name in HIDDEN_TABLES:
            return Verdict((), Basis.FIXED)
        if fixed_roles is not None:
            return Verdict(ALWAYS if fixed_roles & self.role_names else (), Basis.FIXED)
        if member.is_system and self.is_admin:
            return Verdict(ALWAYS, Basis.ADMIN)
        return self._record_verdict(operation, member)

    def column_verdict(self, operation: str, member: Table, column: str) -> Verdict:
        """What decides about a column in the records of exactly this table."""
        fixed_roles = FIXED_READERS.get((member.name, column))
        if fixed_roles is not None and not fixed_roles & self.role_names:
            return Verdict((), Basis.FIXED)
        if member.is_system and self.is_admin:
            return Verdict(ALWAYS, Basis.ADMIN)
        if not self._may_allow(member, self._record_verdict(operation, member).outcome):
            return Verdict((), Basis.RECORD)
        return self._column_verdict(operation, member, column)

    def _record_verdict(self, operation: str, member: Table) -> Verdict:
        # "Record without any rule: denied." "admin passes a level that has no rule".
        no_rule = Verdict(ALWAYS if self.is_admin else (), Basis.NO_RECORD_RULE)
        return self._first_verdict((operation, name, RECORD_LEVEL) for name in rule_tables(member)) or no_rule

    def _column_verdict(self, operation: str, member: Table, column: str) -> Verdict:
        tables = rule_tables(member)
        # Permission to write all columns does not include custom columns: a rule must name them.
        needs_own_rule = operation in (CREATE, WRITE) and column in member.columns and member.columns[column].is_custom
        names = (column,) if needs_own_rule else (column, ANY_COLUMN)
        verdict = self._first_verdict((operation, table, name) for name in names for table in tables)
        # "Column without any rule: allowed where the record is."
        return verdict or (Verdict((), Basis.OWN_RULE_NEEDED) if needs_own_rule else Verdict(ALWAYS, Basis.RECORD))

    def _first_verdict(self, levels: Iterable[RuleLevel]) -> Verdict | None:
        """The verdict of the first level that has a rule."""
        rules = next(filter(None, map(self.catalogue.rules_by_level.get, levels)), None)
        if rules is None:
            return None
        if self.is_admin and any(rule.admin_overrides for rule in rules):
            return Verdict(ALWAYS, Basis.ADMIN, tuple(rule for rule in rules if rule.admin_overrides))
        applicable = tuple(
            rule for rule in rules if not rule.is_broken and (not rule.roles or rule.roles & self.role_names)
        )
        if not applicable:
            return Verdict((), Basis.NO_ROLE, rules)
        unconditional = tuple(rule for rule in applicable if not rule.condition)
        return Verdict(ALWAYS if unconditional else applicable, Basis.RULE, unconditional or applicable)

    def _may_allow(self, member: Table, outcome: LevelOutcome) -> bool:
        """Whether a record of exactly this table might be allowed. Rules that do not fit the table are ignored."""
        return isinstance(outcome, AlwaysAllowed) or any(self._condition_fits(member, rule.query) for rule in outcome)

    def _decide(self, table: Table, outcome_of: Callable[[Table], LevelOutcome]) -> Decision:
        outcomes: dict[LevelOutcome, list[Table]] = {}
        for name in table.family:
            member = self.catalogue.tables[name]
            outcomes.setdefault(outcome_of(member), []).append(member)
        all_cases = [self._case(table, group, outcome, len(outcomes) == 1) for outcome, group in outcomes.items()]
        cases = tuple(case for case in all_cases if case is not None)
        return ALWAYS if cases == (DecisionCase(None, None),) else ConditionalDecision(cases)

    def rule_decision(self, table: Table, member: Table, rule: Rule) -> Decision:
        """The records of exactly `member`, which is or extends `table`, that match the condition of the rule."""
        case = self._case(table, [member], (rule,), is_only=table is member and len(table.family) == 1)
        return ConditionalDecision((case,) if case is not None else ())

    def _case(self, table: Table, group: list[Table], outcome: LevelOutcome, is_only: bool) -> DecisionCase | None:
        """The case for the tables of a family that share an outcome."""
        tables = None if is_only else tuple(sorted(member.id for member in group))
        if isinstance(outcome, AlwaysAllowed):
            return DecisionCase(tables, None)
        conditions = tuple(self._rule_conditions(table, group, outcome))
        return DecisionCase(tables, conditions) if conditions else None

    def _rule_conditions(self, table: Table, group: list[Table], rules: tuple[Rule, ...]) -> Iterator[Expression]:
        for rule in rules:
            if self._condition_fits(table, rule.query):
                yield self._resolve_condition(table, rule.query)
            else:
                # The condition names columns that only child tables have.
                yield from (
                    ChildTablePredicate(child, self._resolve_condition(child, rule.query))
                    for child in group
                    if self._condition_fits(child, rule.query)
                )

    def _resolve_condition(self, table: Table, query: Query) -> Expression:
        condition = resolve_query(self._scope, table, query)
        assert condition is not None  # rules without a condition are not resolved
        return condition

    def _condition_fits(self, table: Table, query: Query) -> bool:
        try:
            check_query(self._scope, table, query)
        except (QueryError, BadRequest):
            return False  # "fails closed": a rule that does not fit never matches
        return True


def check_query(scope: ReadScope, table: Table, query: Query) -> None:
    """Raise an error if a name or value does not fit the table."""
    for predicate in predicates_in(scope, table, query):
        condition = predicate.condition
        value = read_value(condition)
        operands: tuple[Any, ...] = ()
        if condition.row.kind in (ValueKind.TEXT, ValueKind.LIST) and value is not None:
            operands = value if isinstance(value, tuple) else (value,)
        elif isinstance(value, Range):
            operands = (value.low, value.high)
        for operand in operands:
            comparison.comparable_value(predicate.path.column, operand, SAMPLE_MOMENT, condition)


def predicates_in(scope: ReadScope, table: Table, query: Query) -> Iterator[Predicate]:
    """Yield each condition of a query with its resolved columns."""
    condition = resolve_query(scope, table, query)
    if condition is not None:
        yield from predicates_of(condition)


def check_condition(catalogue: Catalogue, table_name: str | None, text: str) -> None:
    """Raise QueryError for a condition that does not fit this table; without a table, only parse it."""
    query = parse(text)
    if query.order:
        first = query.order[0]
        raise QueryError("the condition of a rule cannot contain ORDERBY", first.position, ".".join(first.path))
    if not query.groups:
        raise QueryError("a condition is expected", 0, text)
    table = catalogue.tables.get(table_name) if table_name else None
    if table is None:
        return
    try:
        check_query(RuleScope(catalogue), table, query)
    except BadRequest as error:
        raise QueryError(error.message.rstrip("."), error.position or 0, error.field or "") from None
