"""Explains decisions: which rules allow or deny an operation on a record and on its columns. Pure.

`Permissions` decides which level of rules applies. The database evaluates the conditions of its rules on each record.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tableapi.catalogue.definitions import Column, Rule, Table
from tableapi.query.expressions import (
    ALWAYS,
    AllOf,
    AlwaysAllowed,
    AnyOf,
    ChildTablePredicate,
    ConditionalDecision,
    Decision,
    DecisionCase,
    Expression,
    Predicate,
    RelatedRecords,
    ResolvedPath,
)
from tableapi.query.path_resolver import ReadScope, resolve_path

from .permissions import Basis, Permissions, Verdict

DecisionKey = tuple[str, str]
# Which of the decisions hold for a record.
Results = Mapping[DecisionKey, bool]


@dataclass(frozen=True)
class Reason:
    """`is_allowed` is None if only a condition that the viewer may not read could tell. `rules` are those that allow,
    or those that apply but whose conditions do not hold."""

    is_allowed: bool | None
    basis: Basis
    rules: tuple[Rule, ...] = ()


@dataclass
class DecisionTrace:
    """What has to be evaluated on the records of a table to explain decisions of these permissions.

    `viewer` is the scope of the person who reads the explanation. Whether a condition holds is shown to them only if
    they can read what it compares.
    """

    permissions: Permissions
    table: Table
    viewer: ReadScope
    # By the table and the id of the rule; without an id, whether a record is of exactly this table.
    decisions: dict[DecisionKey, Decision] = field(default_factory=dict)
    _is_shown: dict[DecisionKey, bool] = field(default_factory=dict)

    @property
    def members(self) -> list[Table]:
        return [self.permissions.catalogue.tables[name] for name in self.table.family]

    def add(self, operation: str, columns: Sequence[Column] = ()) -> None:
        """Let the statement evaluate what decides about the operation on records and on these columns."""
        for member in self.members:
            verdicts = [self.permissions.record_verdict(operation, member)]
            verdicts += [self.permissions.column_verdict(operation, member, column.name) for column in columns]
            conditional = [verdict for verdict in verdicts if verdict.outcome not in (ALWAYS, ())]
            rules = dict.fromkeys(rule for verdict in conditional for rule in verdict.rules)
            found: dict[DecisionKey, Decision] = {
                (member.name, rule.id): self.permissions.rule_decision(self.table, member, rule) for rule in rules
            }
            if len(self.members) > 1:
                found[member.name, ""] = ConditionalDecision((DecisionCase((member.id,), None),))
            self.decisions |= found
            self._is_shown |= {key: is_decision_visible(self.viewer, self.table, found[key]) for key in found}

    def member_of(self, results: Results) -> Table:
        return next((member for member in self.members if results.get((member.name, ""))), self.table)

    def record_reason(self, operation: str, results: Results) -> Reason:
        member = self.member_of(results)
        return self._reason(member, self.permissions.record_verdict(operation, member), results)

    def column_reason(self, operation: str, column: Column, results: Results) -> Reason:
        """Whether the operation is also allowed on the column of this record."""
        record, member = self.record_reason(operation, results), self.member_of(results)
        if record.is_allowed is False:
            return Reason(False, Basis.RECORD)
        reason = self._reason(member, self.permissions.column_verdict(operation, member, column.name), results)
        return Reason(None, Basis.RECORD) if record.is_allowed is None and reason.is_allowed else reason

    def _reason(self, member: Table, verdict: Verdict, results: Results) -> Reason:
        if verdict.outcome == ALWAYS or not verdict.outcome:
            return Reason(verdict.outcome == ALWAYS, verdict.basis, verdict.rules)
        shown = [rule for rule in verdict.rules if self._is_shown[member.name, rule.id]]
        matching = tuple(rule for rule in shown if results[member.name, rule.id])
        is_known = bool(matching) or len(shown) == len(verdict.rules)
        return Reason(bool(matching) if is_known else None, verdict.basis, matching or verdict.rules)


def is_decision_visible(scope: ReadScope, table: Table, decision: Decision) -> bool:
    """Whether the conditions of a decision about records of the table compare only values that `scope` can read."""
    cases = () if isinstance(decision, AlwaysAllowed) else decision.cases
    return all(is_expression_visible(scope, table, part) for case in cases for part in case.conditions or ())


def is_expression_visible(scope: ReadScope, table: Table, expression: Expression) -> bool:
    match expression:
        case RelatedRecords():
            return False  # rules have none
        case ChildTablePredicate(child, part):
            return is_expression_visible(scope, child, part)
        case AllOf(parts) | AnyOf(parts):
            return all(is_expression_visible(scope, table, part) for part in parts)
        case Predicate(_, path, other, _, searched_paths):
            return all(is_path_visible(scope, table, used) for used in (path, other, *searched_paths) if used)


def is_path_visible(scope: ReadScope, table: Table, path: ResolvedPath) -> bool:
    """Whether `scope` can read the values at the end of the path in every record, and what guards the path."""
    found = resolve_path(scope, table, path.names)
    if found is None or any(decision != ALWAYS for _, decision in _guards(table, found)):
        return False
    return all(is_decision_visible(scope, guarded, decision) for guarded, decision in _guards(table, path))


def _guards(table: Table, path: ResolvedPath) -> Iterator[tuple[Table, Decision]]:
    """The decisions that guard a path, each with the table whose records it is about."""
    for step in path.steps:
        yield table, step.guard
        yield step.target, step.records
        table = step.target
    yield table, path.guard
