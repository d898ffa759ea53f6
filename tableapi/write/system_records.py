"""Writes records of the product's own tables through their models, so that the models' rules hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import IntegrityError, connection
from django.db.models import Field, ProtectedError, RestrictedError, UniqueConstraint
from psycopg import errors

from accounts.models import User
from accounts.privileges import privilege_guard
from accounts.privileges.last_admin import keeping_an_admin
from system.errors import AccessDenied, Conflict, Invalid, together
from system.records import savers
from system.records.record import Record
from tableapi.access.caller_view import record_not_found
from tableapi.catalogue.column_type import Storage
from tableapi.catalogue.definitions import Column, Table

from .designed_records import Duplicate
from .references import StillReferenced

# After a change of one of these there might be nobody left who can administer.
PEOPLE = frozenset({"user", "sys_role", "sys_user_role"})
# By these a user is let in, kept out, or found by a provider.
IDENTITY = frozenset({"login", "email", "password", "active"})
UNIQUE_CODES = frozenset({"unique", "unique_together"})
# Of a password that nobody sent.
KEPT = object()


@cache
def model_of(name: str) -> type[Record]:
    return next(model for model in apps.get_models() if issubclass(model, Record) and model._meta.db_table == name)


def can_be_sent(table: Table) -> bool:
    """Whether a caller can send all that a new record needs; else the server alone makes records of this table."""
    fields = model_of(table.name)._meta.concrete_fields
    own = [field for field in fields if not field.name.startswith("sys_")]
    return all(field.editable or field.has_default() or field.null or field.blank for field in own)


def take_turn(table: Table) -> None:
    """Before a record is locked: where saving one changes others of its table, one after the other does."""
    if table.is_system:
        model_of(table.name).take_turn()


def insert(table: Table, given: Mapping[Column, Any]) -> str:
    record = model_of(table.name)()
    _save(table, record, given, savers.saver_of(type(record)).prepare("", {}))
    return str(record.pk)


def update(table: Table, sys_id: str, given: Mapping[Column, Any], prepared: Any = None) -> None:
    record = model_of(table.name)._base_manager.select_for_update().filter(pk=sys_id).order_by("pk").first()
    if record is None:
        raise record_not_found()
    _save(table, record, given, prepared)


def delete(table: Table, sys_id: str) -> None:
    record = model_of(table.name)._base_manager.select_for_update().filter(pk=sys_id).order_by("pk").first()
    if record is None:
        raise record_not_found()
    _check_account(record)
    with _keeping_an_admin(table), _as_service_errors(record, {}):
        try:
            record.delete()
            _check_references()
        except ValidationError as error:
            # Nothing was sent that could be wrong: it is what stands there that keeps it.
            raise Conflict(" ".join(error.messages)) from None
        except (ProtectedError, RestrictedError):
            raise StillReferenced from None
        except IntegrityError as error:
            if isinstance(error.__cause__, errors.ForeignKeyViolation):
                raise StillReferenced from None  # by a record that somebody made meanwhile
            raise


def _save(table: Table, record: Record, given: Mapping[Column, Any], prepared: Any) -> None:
    columns = {column.physical: column for column in given}
    known = {column.physical: column.name for column in table.columns.values()}
    names = {field.name: known[field.column] for field in record._meta.concrete_fields if field.column in known}
    with _keeping_an_admin(table), _as_service_errors(record, names):
        password = None if record.is_new else KEPT
        for field in record._meta.concrete_fields:
            column = columns.get(str(field.column))
            if column is None:
                continue
            value = given[column]
            if column.column_type.storage is Storage.HASHED:
                password = value
            else:
                setattr(record, field.attname, _empty(field) if value is None else value)
        # Whether a value is another one must not show: of what the caller sees only changes come here.
        if not IDENTITY.isdisjoint(column.name for column in given):
            _check_account(record)
        saver = savers.saver_of(type(record))
        saver.clean(record, prepared)
        if password is not KEPT and isinstance(record, AbstractBaseUser):
            _set_password(record, password)
        saver.save(record, prepared)
        if password is not KEPT:
            getattr(record, "end_sessions", lambda: None)()
        _check_references()


def _check_account(record: Record) -> None:
    """Whatever rules say: who may change users must not come into the account of somebody with more rights."""
    if isinstance(record, User) and not record.is_new and not privilege_guard.may_change_account(record):
        raise AccessDenied(
            "This account holds a role that no sign-in may grant: only an administrator deletes it or changes its "
            "login, email, password or whether it is active."
        )


def _empty(field: Field[Any, Any]) -> Any:
    """What a field of this kind holds for nothing."""
    if field.null:
        return None
    if isinstance(field, ArrayField):
        return []
    return "" if field.empty_strings_allowed else None


def _check_references() -> None:
    """Now, not at the end of the transaction, where nobody could say any more what is wrong."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


def _set_password(record: AbstractBaseUser, password: Any) -> None:
    if password is None:
        record.set_unusable_password()
        return
    if not isinstance(password, str):
        raise Invalid("A text is expected.", field="password")
    try:
        validate_password(password, record)  # type: ignore[arg-type]  # our user model
    except ValidationError as error:
        raise Invalid(" ".join(error.messages), field="password") from None
    record.set_password(password)


def _keeping_an_admin(table: Table) -> AbstractContextManager[None]:
    return keeping_an_admin() if table.name in PEOPLE else nullcontext()


@contextmanager
def _as_service_errors(record: Record, names: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        raise _refusal(error, record, names) from None
    except IntegrityError as error:
        # The model's checks found nothing: somebody else wrote at the same time.
        if isinstance(error.__cause__, errors.UniqueViolation):
            raise Duplicate from None
        if isinstance(error.__cause__, errors.ForeignKeyViolation):
            raise Invalid("The record referred to is not there.") from None
        raise


def _refusal(error: ValidationError, record: Record, names: Mapping[str, str]) -> Invalid | Conflict:
    """What a model complains of, each with the column it is about; `writing` names it to who may know it."""
    by_field = error.error_dict if hasattr(error, "error_dict") else {"": error.error_list}
    return together([_complaint(field, each[0], record, names) for field, each in by_field.items()])


def _complaint(field: str, error: ValidationError, record: Record, names: Mapping[str, str]) -> Invalid | Conflict:
    name = names.get(field)
    message = " ".join(error.messages)
    taken = _taken(record, error, message)
    if taken:
        return Duplicate(*[names[each] for each in taken if each in names])
    if error.code in ("null", "blank", "required"):
        return Invalid("A value is needed.", code="mandatory", field=name)
    return Invalid(message, field=name)


def _taken(record: Record, error: ValidationError, message: str) -> tuple[str, ...]:
    """The fields that must differ, if that is the complaint."""
    if error.code in UNIQUE_CODES:
        return tuple((error.params or {}).get("unique_check", ()))
    for constraint in record._meta.constraints:
        # Said in words of the model's own, it comes without a code.
        if isinstance(constraint, UniqueConstraint) and constraint.violation_error_message == message:
            return tuple(constraint.fields)
    return ()
