"""Compares a file with what is stored: the steps from one to the other. Pure."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from tableapi.catalogue.definitions import NUMBER_COLUMN
from tableapi.models.validation import RESERVED_PREFIXES

from . import rights
from .document import Design, given_values
from .kinds import CHOICE, COLUMN, KINDS, ROLE, RULE, TABLE, Item, Key, Kind

CREATE, CHANGE, DELETE = "create", "change", "delete"
POSITION = "position"


@dataclass(frozen=True)
class Step:
    action: str
    item: Item  # of the file; to delete, as stored
    stored: Item | None = None
    # Old and new value by attribute.
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    # Why more may be allowed after this step.
    widens: str = ""

    def __str__(self) -> str:
        """For example: `change column task.state: label “State” → “Status”`."""
        parts = [f"{name} {_shown(old)} → {_shown(new)}" for name, (old, new) in self.changes.items()]
        if self.action == CREATE:
            parts = [f"{name} {_shown(new)}" for name, (_, new) in self.changes.items()]
        return f"{self.action} {self.item}{': ' if parts else ''}{', '.join(parts)}"

    def as_entry(self) -> dict[str, Any]:
        changes = {name: {"from": old, "to": new} for name, (old, new) in self.changes.items()}
        entry = {"action": self.action, "kind": self.item.kind.name, "name": str(self.item), "changes": changes}
        return entry | {"widens_rights": bool(self.widens), "reason": self.widens}


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(str, value))}]" if value else "none"
    return f"“{value}”" if isinstance(value, str) else "none" if value is None else str(value).lower()


def make_plan(wanted: Design, stored: Design, product_tables: Collection[str], *, prune: bool) -> list[Step]:
    """The steps in the order in which they are applied."""
    wanted, stored = match_rules(wanted, stored)
    steps = [step for kind in KINDS for step in _saves(kind, wanted, stored, product_tables)]
    if prune:
        steps += [step for kind in reversed(KINDS) for step in _deletions(kind, wanted, stored)]
    steps.sort(key=_phase)  # stable
    return rights.mark(steps, stored)


def _phase(step: Step) -> int:
    """Columns with choices are changed after these, except to the type that allows them."""
    kind = step.item.kind
    if step.action == DELETE:
        return len(KINDS)
    is_late = kind is COLUMN and step.action == CHANGE and "type" not in step.changes
    return KINDS.index(CHOICE if is_late else kind)


def _saves(kind: Kind, wanted: Design, stored: Design, product_tables: Collection[str]) -> Iterator[Step]:
    items = list(wanted.of(kind).values())
    if kind is TABLE:
        items = _parents_first(wanted)
    positions = _new_positions(kind, wanted, stored) if kind.is_ordered else {}
    for item in items:
        old = stored.of(kind).get(item.key)
        if kind is TABLE and item.values.keys() == {"name"} and (old or item.key[0] in product_tables):
            continue  # only the parent of what follows
        moves = {POSITION: (None, positions[item.key])} if item.key in positions else {}
        if old is None:
            given = {name: (None, value) for name, value in given_values(item) if name not in kind.identity}
            yield Step(CREATE, item, None, given | moves)
        elif changes := _differences(item, old) | moves:
            yield Step(CHANGE, item, old, changes)


def _differences(item: Item, old: Item) -> dict[str, tuple[Any, Any]]:
    return {name: (old.values[name], value) for name, value in item.values.items() if value != old.values[name]}


def _new_positions(kind: Kind, wanted: Design, stored: Design) -> dict[Key, int]:
    """The positions to store, if the order differs from that of the file."""
    siblings: dict[Key, list[Key]] = {}
    for item in wanted.of(kind).values():
        siblings.setdefault(item.parent_key, []).append(item.key)
    positions: dict[Key, int] = {}
    for keys in siblings.values():
        known = set(keys)
        if [key for key in stored.of(kind) if key in known] != keys:
            positions |= {
                key: number
                for number, key in enumerate(keys, 1)
                if key not in stored.of(kind) or stored.of(kind)[key].record.position != number
            }
    return positions


def _parents_first(wanted: Design) -> list[Item]:
    tables, result = wanted.of(TABLE), dict[Key, Item]()

    def visit(item: Item, children: frozenset[Key]) -> None:
        parent = tables.get((item.values.get("parent", ""),))
        if parent is not None and parent.key not in result and parent.key not in children:
            visit(parent, children | {item.key})
        result.setdefault(item.key, item)

    for item in tables.values():
        visit(item, frozenset())
    return list(result.values())


def _deletions(kind: Kind, wanted: Design, stored: Design) -> Iterator[Step]:
    """What the file omits from the sections that it has. Deleting a parent also deletes what belongs to it."""
    items = _parents_first(stored) if kind is TABLE else list(stored.of(kind).values())
    for item in reversed(items):
        parent = item.kind.parent
        # A file could not create a table with a reserved name again.
        is_shipped = (
            rights.is_shipped(item) if kind is ROLE else kind is TABLE and item.key[0].startswith(RESERVED_PREFIXES)
        )
        if item.key in wanted.of(kind) or is_shipped:
            continue
        has_section = (kind, item.parent_key) in wanted.sections and kind is not TABLE
        is_kept_parent = (
            parent is None or item.parent_key in wanted.of(parent) or item.parent_key not in stored.of(parent)
        )
        if not is_kept_parent or not (wanted.is_complete or has_section):
            continue
        table = wanted.of(TABLE).get(item.key[:1])
        has_numbers = table is not None and table.values.get("number_prefix", True)
        if kind is COLUMN and item.key[1] == NUMBER_COLUMN and has_numbers:
            continue  # created with the table, so a file may omit it
        yield Step(DELETE, item, item)


def match_rules(wanted: Design, stored: Design) -> tuple[Design, Design]:
    """Identify rules by table, operation, column and description, or by their content if there is no description, or
    if several rules have the same one."""
    designs = (wanted, stored)
    counts = [Counter(_rule_name(item) for item in design.of(RULE).values()) for design in designs]
    ambiguous = {name for count in counts for name, number in count.items() if number > 1}
    results = []
    for design in designs:
        rules: dict[Key, Item] = {}
        copies: Counter[Key] = Counter()
        for item in design.of(RULE).values():
            name = _rule_name(item)
            key = name if name[-1] and name not in ambiguous else (*name, json.dumps(sorted(item.values.items())))
            copies[key] += 1
            rules[(*key, str(copies[key]))] = replace(item, key=(*key, str(copies[key])))
        results.append(replace(design, items=design.items | {RULE: rules}))
    return results[0], results[1]


def _rule_name(item: Item) -> Key:
    values = item.values
    return (item.key[0], values["operation"], values["column"], values["description"])
