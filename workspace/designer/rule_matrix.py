"""The matrix of access rules: a ticked cell is a rule for one role, or for everyone, without anything special."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from django.core.exceptions import ValidationError
from django.http import QueryDict

from accounts.models import Role
from system.records import savers
from tableapi.access.permissions import RECORD_LEVEL
from tableapi.models import Rule, Table

from .section import save_record

OPERATIONS = ("read", "create", "write", "delete")
EVERYONE = ""
# Prefix of the name of a role that saving creates.
NEW_ROLE = "new:"


class Cell(NamedTuple):
    operation: str
    column: str
    # The ID of a role, `new:` and a name, or "" for everyone.
    role: str

    @property
    def key(self) -> str:
        return ":".join(self)


class RuleMatrix:
    def __init__(self, data: QueryDict | None, table: Table | None, columns: Mapping[str, str]) -> None:
        self.table, self.columns = table, columns
        self.role_names = dict(Role.objects.values_list("sys_id", "name"))
        self.new_role_ids = {f"{NEW_ROLE}{name}": sys_id for sys_id, name in self.role_names.items()}
        self.errors: list[str] = []
        self.stored: dict[Cell, Rule] = {}
        # The rules that a cell cannot represent.
        self.others: list[Rule] = []
        self.rules = [] if table and table.is_new else list(Rule.objects.filter(table=table).select_related("table"))
        sent = data or QueryDict()
        rows = {sent.get(f"rules-{number}-sys_id", "") for number in sent.getlist("rules-row")}
        for rule in self.rules:
            cell = None if rule.pk in rows else self._cell_of(rule)
            if cell is None or cell in self.stored:
                self.others.append(rule)
            else:
                self.stored[cell] = rule
        # A rule that was not shown is not deleted.
        shown = sent.getlist("rules-stored")
        self.ticked = {cell for cell, rule in self.stored.items() if rule.pk not in shown}
        self.ticked |= set(map(self._read_cell, sent.getlist("rules-cell")))
        added = [self._read_role(role) for role in sent.getlist("rules-role")]
        if name := sent.get("rules-new_role", "").strip():
            added.append(self._read_role(NEW_ROLE + name))
        cells = {*self.stored, *self.ticked}
        self.roles = self._ordered_roles({*added, *(cell.role for cell in cells)} - {EVERYONE})
        self.subjects = self._ordered_subjects({*sent.getlist("rules-column"), *(cell.column for cell in cells)})

    def _cell_of(self, rule: Rule) -> Cell | None:
        is_plain = rule.active and rule.admin_overrides and not rule.condition
        if not is_plain or len(rule.roles) > 1 or not self.role_names.keys() >= set(rule.roles):
            return None
        return Cell(rule.operation, rule.column_name, rule.roles[0] if rule.roles else EVERYONE)

    def _read_cell(self, key: str) -> Cell:
        # A damaged key is refused because of its operation. It must not become a rule for everyone.
        operation, column, role = key.split(":", 2) if key.count(":") > 1 else ("", "", "")
        return Cell(operation, column, self._read_role(role))

    def _read_role(self, role: str) -> str:
        """If somebody has created the new role already, use that one."""
        return self.new_role_ids.get(role, role)

    def _ordered_roles(self, roles: Iterable[str]) -> dict[str, str]:
        names = {role: self.role_names.get(role) or role.removeprefix(NEW_ROLE) for role in roles if role}
        return {EVERYONE: "Everyone", **dict(sorted(names.items(), key=lambda item: item[1].casefold()))}

    def _ordered_subjects(self, names: set[str]) -> dict[str, str]:
        known = {RECORD_LEVEL: "the record", **self.columns}
        others = {name: name for name in sorted(names - known.keys())}
        return {name: label for name, label in (known | others).items() if name in names or name == RECORD_LEVEL}

    @property
    def groups(self) -> list[dict[str, object]]:
        return [
            {"column": column, "label": label, "rows": [self._row(column, *role) for role in self.roles.items()]}
            for column, label in self.subjects.items()
        ]

    def _row(self, column: str, role: str, name: str) -> dict[str, object]:
        cells = [Cell(operation, column, role) for operation in OPERATIONS]
        states = [(cell, self.stored.get(cell), cell in self.ticked) for cell in cells]
        return {"role": role, "name": name, "cells": states}

    @property
    def offered_roles(self) -> Iterator[tuple[str, str]]:
        return (item for item in sorted(self.role_names.items(), key=lambda item: item[1]) if item[0] not in self.roles)

    def save(self) -> None:
        # Rules of columns that were deleted on this page are gone already.
        unticked = [rule.pk for cell, rule in self.stored.items() if cell not in self.ticked]
        for rule in Rule.objects.filter(pk__in=unticked):
            rule.delete()
        for cell in sorted(self.ticked - self.stored.keys()):
            try:
                roles = [self.role_id(cell.role)] if cell.role else []
                save_record(Rule(table=self.table, operation=cell.operation, column_name=cell.column, roles=roles))
            except ValidationError as error:
                name = f"{self.roles.get(cell.role, '')}: {cell.operation} {self.subjects.get(cell.column, '')}"
                self.errors.append(f"{name}: {' '.join(error.messages)}")

    @property
    def roles_of_rules(self) -> dict[str, str]:
        """All roles, with those that saving creates."""
        return self.role_names | {role: name for role, name in self.roles.items() if role.startswith(NEW_ROLE)}

    def role_id(self, role: str) -> str:
        """The ID of the role, which is created if it is new."""
        if role.startswith(NEW_ROLE) and role not in self.new_role_ids:
            record = Role(name=role.removeprefix(NEW_ROLE))
            savers.saver_of(Role).clean(record)
            save_record(record)
            self.new_role_ids[role] = record.pk
        return self.new_role_ids.get(role, role)
