"""Saves a connection for an administrator: checks its script, marks it for approval and finds its provider.

    run the script ──▶ lock ──▶ validate ──▶ OidcSetting.save() ──▶ approval mark ──▶ commit ──▶ find the provider
    child process      one transaction                                                          network

`OidcSetting.save()` enforces only the rules of the specification and those of a single row.
"""

from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts import privileges
from sso.models import OidcSetting
from sso.models.connection_validators import normalize_newlines
from sso.provider import discovery, request_slots
from sso.scripts import mapping_script
from system.records import custom_columns
from system.records.savers import RecordSaver

PROVIDER_NOT_DISCOVERED = (
    "The provider was not looked up because too many requests were in progress when the connection was saved."
)
# These columns decide who may sign in. After a change by a user without the role admin, approval is required.
SECURITY_COLUMNS = (
    "url_idp", "realm", "client_id", "user_field", "script", "role_claim", "enable_user_creation", "ignore_case",
    "enable_role_mapping", "update_data_when_login", "authorization_type", "response_type", "group_claim",
)  # fmt: skip


class ScriptChecks:
    """Caches the results of script checks. All saves share one lock and should not wait for a child process, so a
    script is checked before the lock is taken and not checked again."""

    def __init__(self) -> None:
        self._check_once = cache(_check_script)

    def find_error(self, stored_setting: OidcSetting | None, script: str, *, is_active: bool) -> str:
        """Return why the script prevents this change from being saved, or an empty string."""
        if stored_setting is not None and script == stored_setting.script and (stored_setting.active or not is_active):
            return ""
        return self._check_once(normalize_newlines(script))

    def check_before_lock(self, stored_setting: OidcSetting | None, changes: Mapping[str, Any]) -> None:
        """Check the script that these changes will store. If another user stores a different script in the meantime,
        that one is checked under the lock."""
        script = changes.get("script", stored_setting.script if stored_setting else None)
        if isinstance(script, str):
            self.find_error(stored_setting, script, is_active=bool(changes.get("active")))


def _check_script(source: str) -> str:
    if source in ("", mapping_script.DEFAULT_SCRIPT):  # an empty script is an error of the field itself
        return ""
    try:
        mapping_script.check_script(source, custom_columns.column_names("user"))
    except mapping_script.ScriptRefused as error:
        return str(error)
    return ""


def is_approval_due(previous_setting: OidcSetting | None, setting: OidcSetting) -> bool:
    """Whether the connection needs approval after the acting user has saved these values.

    A pending approval stays due, because a user who saves one column has not reviewed the others.
    """
    is_security_relevant = (
        previous_setting is None
        or (setting.active and not previous_setting.active)
        or any(getattr(previous_setting, name) != getattr(setting, name) for name in SECURITY_COLUMNS)
    )
    return setting.needs_approval or (is_security_relevant and not privileges.acts_as_admin())


def validate_connection(stored_setting: OidcSetting | None, setting: OidcSetting, checks: ScriptChecks) -> None:
    """Raise one `ValidationError` with the errors of all columns and of the script."""
    errors: dict[str, Any] = {}
    try:
        setting.full_clean(exclude={"sys_id"})
    except ValidationError as error:
        errors = error.update_error_dict(errors)
    if "script" not in errors and (
        script_error := checks.find_error(stored_setting, setting.script, is_active=setting.active)
    ):
        errors["script"] = script_error
    if errors:
        raise ValidationError(errors)


def save_connection(
    setting: OidcSetting, *, update_fields: Collection[str] | None = None, script_checks: ScriptChecks | None = None
) -> None:
    """Save on behalf of the acting user (`system.records.acting_user`); `script_checks` are earlier results."""
    checks = script_checks or ScriptChecks()
    columns = ConnectionSaver.prepared_columns
    changes = {name: getattr(setting, name) for name in columns if update_fields is None or name in update_fields}
    checks.check_before_lock(setting.stored_record(), changes)
    with transaction.atomic():
        previous_setting = setting.lock_and_merge(update_fields)
        validate_connection(previous_setting, setting, checks)
        setting.save()
        if not setting.needs_approval and is_approval_due(previous_setting, setting):
            setting.amend_last_entry(needs_approval=True)
        if not setting.issuer:
            callback = partial(find_provider, setting, amends_last_entry=setting.has_history_entry)
            transaction.on_commit(callback, robust=True)


def find_provider(setting: OidcSetting, *, amends_last_entry: bool) -> None:
    try:
        with request_slots.request_slot():
            discovery.rediscover(setting, amends_last_entry=amends_last_entry)
    except request_slots.NoSlotFree:  # the first sign-in or a button on the form tries again
        setting.update_unversioned(resolve_error=PROVIDER_NOT_DISCOVERED)


class ConnectionSaver(RecordSaver):
    prepared_columns = frozenset({"script", "active"})

    def prepare(self, sys_id: str, changes: Mapping[str, Any]) -> ScriptChecks:
        checks, stored_setting = ScriptChecks(), OidcSetting.objects.filter(pk=sys_id).first()
        if stored_setting is not None:
            checks.check_before_lock(stored_setting, changes)
        return checks

    def clean(self, record: OidcSetting, prepared: ScriptChecks | None = None) -> None:
        validate_connection(record.stored_record(), record, prepared or ScriptChecks())

    def save(self, record: OidcSetting, prepared: ScriptChecks | None = None) -> None:
        save_connection(record, script_checks=prepared)
