"""Says in words why a decision is as it is. Equal reasons share a number, so that cells can refer to a list of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tableapi.access.decision_trace import Reason
from tableapi.access.permissions import Basis
from tableapi.catalogue.definitions import Rule, Table
from tableapi.read.context import ReadContext
from workspace.lists.query_description import describe_query

Key = tuple[bool | None, Basis, tuple[str, ...]]


@dataclass
class ReasonList:
    """The reasons on one page, in the words of the viewer."""

    viewer: ReadContext
    table: Table
    reasons: dict[Key, Reason] = field(default_factory=dict)

    def add(self, reason: Reason) -> dict[str, Any]:
        """What a cell shows. A column without a rule follows the record, so it needs no number."""
        if reason.basis is Basis.RECORD:
            return {"reason": reason, "number": 0}
        key = (reason.is_allowed, reason.basis, tuple(rule.id for rule in reason.rules))
        self.reasons.setdefault(key, reason)
        return {"reason": reason, "number": [*self.reasons].index(key) + 1}

    def texts(self) -> list[dict[str, Any]]:
        return [
            {"is_allowed": reason.is_allowed, "basis": reason.basis, "rules": list(self._rules(reason))}
            for reason in self.reasons.values()
        ]

    def _rules(self, reason: Reason) -> Iterator[dict[str, str]]:
        return (rule_in_words(self.viewer, self.table, rule) for rule in reason.rules)


def rule_in_words(viewer: ReadContext, table: Table, rule: Rule) -> dict[str, str]:
    """A rule that applies to this table, with its condition in words."""
    owner = viewer.view.catalogue.tables.get(rule.table or "")
    subject = ".".join(filter(None, (owner.label if owner else "any table", rule.column)))
    roles = " or ".join(sorted(rule.roles)) or ("roles that were deleted" if rule.is_broken else "everyone")
    condition = describe_query(viewer, owner or table, rule.condition) if rule.condition else ""
    return {"id": rule.id, "text": f"{rule.operation} {subject} for {roles}", "condition": condition}
