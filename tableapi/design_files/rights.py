"""Marks the steps of a plan after which somebody may do more than before. When in doubt, a step is marked. Pure."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from accounts.roles import SHIPPED_ROLES

from .document import Design
from .kinds import COLUMN, ROLE, RULE, SET_RULE, Item, Key

if TYPE_CHECKING:
    from .plan import Step


def is_shipped(role: Item) -> bool:
    return role.key[0] in SHIPPED_ROLES


def mark(steps: "list[Step]", stored: Design) -> "list[Step]":
    levels = Counter(_level(item) for item in stored.of(RULE).values() if item.values["active"])
    for step in steps:
        if step.item.kind is RULE:
            was_active = step.stored is not None and step.stored.values["active"]
            is_active = step.action != "delete" and step.item.values["active"]
            levels[_level(step.item)] += int(is_active) - int(was_active)
    return [replace(step, widens=_reason(step, levels)) for step in steps]


def _level(item: Item) -> Key:
    return item.key[0], item.values["operation"], item.values["column"]


def _reason(step: "Step", levels: Counter[Key]) -> str:
    kind, changes = step.item.kind, step.changes
    if kind is RULE:
        return _rule_reason(step, levels)
    if kind is ROLE and step.action != "delete":
        return _role_reason(changes)
    if kind is COLUMN and changes.get("read_only") == (True, False):
        return "Callers can write the column."
    if kind is COLUMN and step.action == "change" and "type" in changes:
        return "Columns of other types can be readable."
    if kind is SET_RULE and (step.action == "delete" or "column" in changes) and step.stored is not None:
        return "Callers can write the column that the rule set."
    return ""


def _role_reason(changes: dict[str, tuple[Any, Any]]) -> str:
    old, new = changes.get("contains", ([], []))
    if set(new) - set(old or ()):
        return "The role contains more roles."
    if changes.get("grantable_by_sign_in") == (False, True):
        return "Providers can grant the role."
    return ""


def _rule_reason(step: "Step", levels: Counter[Key]) -> str:
    new = step.item.values
    if step.action == "create":
        is_for_everyone = not new["roles"] and not new["condition"]
        return ("A new rule for everyone." if is_for_everyone else "A new rule.") if new["active"] else ""
    assert step.stored is not None
    old = step.stored.values
    if step.action == "delete" or not new["active"]:
        is_last = old["active"] and not levels[_level(step.stored)]
        return "No other rule of this level remains, so less specific rules decide." if is_last else ""
    if not old["active"]:
        return "The rule becomes active."
    if new["admin_overrides"] and not old["admin_overrides"]:
        return "Administrators bypass the rule."
    if old["roles"] and not (new["roles"] and set(new["roles"]) <= set(old["roles"])):
        return "The rule applies to more roles."
    if old["condition"] and new["condition"] != old["condition"]:
        return "The condition changes or is removed."
    return ""
