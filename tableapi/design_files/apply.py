"""Applies a design file in one transaction under the design lock, or does so and rolls back, to plan it."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.db.models import ProtectedError, RestrictedError

from accounts.models import UserRole
from system.errors import Conflict, InvalidInput, ServiceError, combine_errors
from tableapi.database import catalogue_loader
from tableapi.ddl import schema_editor
from tableapi.design import catalogue_checks, saving
from tableapi.read.context import Caller

from . import record_ids
from .document import Design, parse_design
from .export import product_table_names, read_design, require_admin
from .kinds import CHOICE, COLUMN, KINDS, ROLE, TABLE, Item
from .plan import DELETE, POSITION, Step, make_plan

# Later kinds are checked with the catalogue that consists of these.
TABLE_KINDS = (ROLE, TABLE, COLUMN, CHOICE)


@dataclass(frozen=True)
class Plan:
    steps: list[Step]  # in the order in which they are applied

    @property
    def shown_steps(self) -> list[Step]:
        """Those that widen rights first."""
        return sorted(self.steps, key=lambda step: not step.widens)

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(map(str, self.steps)).encode()).hexdigest()


class _RolledBack(Exception):
    """Ends the transaction of a plan."""


def apply_design(
    caller: Caller, data: bytes, *, prune: bool = False, is_dry_run: bool = False, digest: str = ""
) -> Plan:
    """Apply the file as a whole, or raise an error. A dry run does the same and rolls back, so what a plan accepts can
    be applied. With the digest of a plan, exactly that plan is applied."""
    require_admin(caller)
    wanted = parse_design(data)
    plan = Plan([])
    try:
        with schema_editor.design_lock():
            product_tables = product_table_names()
            plan = Plan(make_plan(wanted, read_design(), product_tables, prune=prune))
            if digest not in ("", plan.digest):
                raise Conflict("The design has changed since this plan. Check the new plan.", code="plan_changed")
            _carry_out(caller, plan.steps)
            _check_result(wanted, make_plan(wanted, read_design(), product_tables, prune=prune))
            if is_dry_run:
                raise _RolledBack
    except _RolledBack:
        pass
    return plan


def _carry_out(caller: Caller, steps: list[Step]) -> None:
    for step in steps:
        if step.item.kind is ROLE and step.stored is None:
            with _naming(step.item):  # roles can contain each other, so all are created first
                ROLE.save(ROLE.model(name=step.item.key[0]), caller)
    saves = [step for step in steps if step.action != DELETE]
    of_tables = [step for step in saves if step.item.kind in TABLE_KINDS]
    for step in of_tables:
        _save(step, caller)
    for column in {step.item.parent_key for step in steps if step.item.kind is CHOICE}:
        record = COLUMN.model.objects.filter(table__name=column[0], name=column[1]).first()
        if record is not None and record.default_value:
            with _naming(Item(COLUMN, column, {})):
                saving.validate(record)  # its default must be one of the choices
    with catalogue_checks.fixed_catalogue():
        for step in saves[len(of_tables) :]:
            _save(step, caller)
    _delete_all(steps[len(saves) :])


def _save(step: Step, caller: Caller) -> None:
    item, kind = step.item, step.item.kind
    with _naming(item):
        if step.stored is not None:
            record = kind.model.objects.get(pk=step.stored.record.pk)
        elif kind is ROLE:
            record = ROLE.model.objects.get(name=item.key[0])
        else:
            record = kind.new(item.key, caller)
        kind.assign(item, record)
        if POSITION in step.changes:
            record.position = step.changes[POSITION][1]
        kind.save(record, caller)


def _delete_all(steps: list[Step]) -> None:
    tables = [step.item.record.pk for step in steps if step.item.kind is TABLE]
    # Tables that refer to each other could not be deleted one after the other.
    for column in COLUMN.model.objects.filter(table__in=tables, reference_table__in=tables):
        if schema_editor.has_records(column.table):
            raise _error(Item(TABLE, (column.table.name,), {}), "It has records, so it cannot be deleted.")
        column.delete()
    for step in steps:
        _delete(step)


def _delete(step: Step) -> None:
    record = step.item.kind.model.objects.filter(pk=step.item.record.pk).first()
    if step.item.kind is ROLE and UserRole.objects.filter(role=record).exists():
        raise _error(step.item, "Users have this role. Revoke it first.")
    if record is not None:  # it may have been deleted with its column
        with _naming(step.item):
            record.delete()


def _check_result(wanted: Design, remaining: list[Step]) -> None:
    """Refuse a file that cannot be reached, such as one with two display columns, and one that contains ids."""
    catalogue = catalogue_loader.load()
    errors: list[ServiceError] = []
    for step in remaining:
        names = ", ".join(step.changes) or step.action
        errors.append(_error(step.item, f"This contradicts another part of the file ({names})."))
    for kind in KINDS:
        for item in wanted.of(kind).values():
            for name in record_ids.id_attributes(catalogue, item):
                errors.append(_error(item, f"“{name}” {record_ids.PROBLEM}.", name, "names_record"))
    if errors:
        raise combine_errors(errors)


@contextmanager
def _naming(item: Item) -> Iterator[None]:
    """Add the item and its line to errors."""
    try:
        yield
    except ValidationError as error:
        by_field = error.message_dict if hasattr(error, "error_dict") else {"": error.messages}
        names = {row.record_field: row.name for row in item.kind.attributes}
        errors = [
            _error(item, message, names.get(field, "")) for field, messages in by_field.items() for message in messages
        ]
        raise combine_errors(errors) from None
    except (ProtectedError, RestrictedError):
        raise _error(item, "Other parts of the design refer to it.") from None
    except (Conflict, InvalidInput) as error:
        raise _error(item, error.message, error.field or "", error.code) from None


def _error(item: Item, message: str, name: str = "", code: str = "invalid_value") -> InvalidInput:
    place = f"Line {item.line}, {item}" if item.line else f"{item}"
    label = f" ({name})" if name else ""
    return InvalidInput(f"{place}{label}: {message}", code=code, field=name or None, position=item.line or None)
