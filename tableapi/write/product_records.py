"""Writes records of product tables through their models and validation."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.password_validation import validate_password
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.db import IntegrityError
from django.db.models import Field, ProtectedError, RestrictedError, UniqueConstraint
from psycopg import errors

from accounts.models import User
from accounts.privileges import ensure_admin_remains, may_change_account
from system.errors import AccessDenied, Conflict, InvalidInput, combine_errors
from system.plain_sql import run_statement
from system.records import savers
from system.records.record import Record
from tableapi.access.caller_view import record_not_found
from tableapi.catalogue.column_type import StorageFormat
from tableapi.catalogue.definitions import Column, Table

from . import custom_columns
from .designed_records import Duplicate, translating_integrity_errors
from .references import StillReferenced

# Changes to these tables could remove the last administrator.
ADMIN_TABLES = frozenset({"user", "sys_role", "sys_user_role"})
# Columns that decide who can sign in.
SIGN_IN_COLUMNS = frozenset({"login", "email", "password", "active"})
UNIQUE_CODES = frozenset({"unique", "unique_together"})
# The password was not sent.
UNCHANGED_PASSWORD = object()


def models_with_columns() -> list[type[Record]]:
    """Return the models whose tables are in the Table API."""
    return [model for model in apps.get_models() if issubclass(model, Record) and model.table_columns]


@cache
def model_of(name: str) -> type[Record]:
    return next(model for model in models_with_columns() if model._meta.db_table == name)


def can_be_created_by_clients(table: Table) -> bool:
    """Whether clients can send all required columns. Otherwise only the server creates records of this table."""
    fields = model_of(table.name)._meta.concrete_fields
    client_fields = [field for field in fields if not field.name.startswith("sys_")]
    return all(field.editable or field.has_default() or field.null or field.blank for field in client_fields)


def lock_for_change(table: Table) -> None:
    """Serialize writes to tables where saving one record changes others. Call this before locking the record."""
    if table.is_system:
        model_of(table.name).lock_for_change()


def insert(table: Table, values: Mapping[Column, Any]) -> str:
    record = model_of(table.name)()
    _save(table, record, values, savers.saver_of(type(record)).prepare("", {}))
    return str(record.pk)


def restore(table: Table, sys_id: str, payload: Mapping[str, Any], custom_values: Mapping[Column, Any]) -> list[str]:
    """Restore the record from an entry of the deletion log. Returns the columns whose referenced records no longer
    exist."""
    record = model_of(table.name)(sys_id=sys_id)
    lost_columns = []
    for field in record._meta.concrete_fields:
        if field.attname not in payload or field.name in ("sys_id", "sys_updated_at", "sys_updated_by"):
            continue
        value = field.to_python(payload[field.attname])
        target: Any = field.related_model
        is_lost = value is not None and target is not None and not target._base_manager.filter(pk=value).exists()
        lost_columns += [field.attname] * is_lost
        setattr(record, field.attname, None if is_lost else value)
    record.sys_version += 1
    created_at, created_by = record.sys_created_at, record.sys_created_by
    _save(table, record, custom_values, savers.saver_of(type(record)).prepare("", {}))
    type(record)._base_manager.filter(pk=sys_id).update(sys_created_at=created_at, sys_created_by=created_by)
    return lost_columns


def update(table: Table, sys_id: str, values: Mapping[Column, Any], prepared: Any = None) -> None:
    _save(table, _locked_record(table, sys_id), values, prepared)


def delete(table: Table, sys_id: str) -> None:
    record = _locked_record(table, sys_id)
    _check_account(record)
    with _keeping_an_admin(table), _translating_validation_errors(table, record, {}):
        try:
            record.delete()
            _check_references()
        except ValidationError as error:
            # A conflict, because the client sent no value that could be invalid.
            raise Conflict(" ".join(error.messages)) from None
        except (ProtectedError, RestrictedError):
            raise StillReferenced from None
        except IntegrityError as error:
            if isinstance(error.__cause__, errors.ForeignKeyViolation):
                raise StillReferenced from None  # by a record created at the same time
            raise


def _locked_record(table: Table, sys_id: str) -> Record:
    record = model_of(table.name)._base_manager.select_for_update().filter(pk=sys_id).order_by("pk").first()
    if record is None:
        raise record_not_found()
    return record


def _save(table: Table, record: Record, values: Mapping[Column, Any], prepared: Any) -> None:
    columns = {column.database_name: column for column in values}
    column_names = {column.database_name: column.name for column in table.columns.values()}
    fields = record._meta.concrete_fields
    names = {field.name: column_names[field.column] for field in fields if field.column in column_names}
    with _keeping_an_admin(table), _translating_validation_errors(table, record, names):
        password = None if record.is_new else UNCHANGED_PASSWORD
        for field in fields:
            column = columns.get(str(field.column))
            if column is None:
                continue
            value = values[column]
            if column.column_type.storage is StorageFormat.HASHED:
                password = value
            else:
                setattr(record, field.attname, _empty_value(field) if value is None else value)
        # Checked even if the value stays the same, because the result must not reveal that.
        if not SIGN_IN_COLUMNS.isdisjoint(column.name for column in values):
            _check_account(record)
        saver = savers.saver_of(type(record))
        saver.clean(record, prepared)
        if password is not UNCHANGED_PASSWORD and isinstance(record, AbstractBaseUser):
            _set_password(record, password)
        record.custom_columns_writer = custom_columns.writer(table, values)
        saver.save(record, prepared)
        if password is not UNCHANGED_PASSWORD:
            getattr(record, "end_sessions", lambda: None)()
        _check_references()


def _check_account(record: Record) -> None:
    """Whatever the access rules allow, callers who may change users must not take over an account with more rights."""
    if isinstance(record, User) and not record.is_new and not may_change_account(record):
        raise AccessDenied(
            "This account has a protected role. Only an administrator can delete it or change its login, email, "
            "password or active state."
        )


def _empty_value(field: "Field[Any, Any]") -> Any:
    if field.null:
        return None
    if isinstance(field, ArrayField):
        return []
    return "" if field.empty_strings_allowed else None


def _check_references() -> None:
    """Check deferred constraints now, while the error can still be reported for this record."""
    run_statement("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")


def _set_password(record: AbstractBaseUser, password: Any) -> None:
    if password is None:
        record.set_unusable_password()
        return
    if not isinstance(password, str):
        raise InvalidInput("Expected a string.", field="password")
    try:
        validate_password(password, record)  # type: ignore[arg-type]  # our user model
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), field="password") from None
    record.set_password(password)


def _keeping_an_admin(table: Table) -> AbstractContextManager[None]:
    return ensure_admin_remains() if table.name in ADMIN_TABLES else nullcontext()


@contextmanager
def _translating_validation_errors(table: Table, record: Record, names: Mapping[str, str]) -> Iterator[None]:
    """Turn validation errors of a model into errors of its columns; `column_errors` hides unknown columns."""
    try:
        # Constraints are violated only by concurrent writes after the model's validation.
        with translating_integrity_errors(table):
            yield
    except ValidationError as error:
        by_field = error.error_dict if hasattr(error, "error_dict") else {"": error.error_list}
        service_errors = [_to_service_error(field, errors_[0], record, names) for field, errors_ in by_field.items()]
        raise combine_errors(service_errors) from None


def _to_service_error(
    field: str, error: ValidationError, record: Record, names: Mapping[str, str]
) -> InvalidInput | Conflict:
    name = names.get(field)
    message = " ".join(error.messages)
    fields = _unique_fields(record, error, message)
    if fields:
        return Duplicate(*[names[unique_field] for unique_field in fields if unique_field in names])
    if error.code in ("null", "blank", "required"):
        return InvalidInput("A value is required.", code="mandatory", field=name)
    return InvalidInput(message, field=name)


def _unique_fields(record: Record, error: ValidationError, message: str) -> tuple[str, ...]:
    """Return the fields that must be unique, if the error is about uniqueness."""
    if error.code in UNIQUE_CODES:
        return tuple((error.params or {}).get("unique_check", ()))
    for constraint in record._meta.constraints:
        # An error with a custom message has no code.
        if isinstance(constraint, UniqueConstraint) and constraint.violation_error_message == message:
            return tuple(constraint.fields)
    return ()
