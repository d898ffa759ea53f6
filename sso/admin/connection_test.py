"""Runs Test connection and Try the script, the buttons that change no setting."""

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

from sso.admin import connection_warnings
from sso.connections import saving
from sso.connections.certificate_updates import format_counts
from sso.models import IdpCertificate, OidcSetting
from sso.models.provider_state import INTERNAL_COLUMNS
from sso.provider import client_check, discovery, request_slots
from sso.provisioning import sign_in
from sso.tokens import key_sets
from system.outbound.deadline import Deadline
from system.strict_json import InvalidJson, parse_json

MAX_CLAIMS_LENGTH = 256 * 1024
MAX_VALUE_LENGTH = 500


@dataclass(frozen=True)
class TestReport:
    """The result of a test, shown in a box on the form."""

    title: str
    is_successful: bool
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    may_adopt: bool = False
    # The version of the record that was tested, and the version after the test stored endpoints.
    versions: tuple[str, str] = ("", "")
    # Set if the tested values are not those that sign-ins use.
    unsaved_warning: str = ""


def run_connection_test(setting: OidcSetting, callback_url: str) -> TestReport:
    """Test discovery, keys and client with the values in the form. `callback_url` is the URL of our callback view."""
    try:
        with request_slots.request_slot():
            report = _run_test(setting, callback_url, Deadline.after(discovery.MAX_DISCOVERY_S))
    except request_slots.NoSlotFree:
        return TestReport(f"Nothing was tested. {request_slots.NO_SLOT_FREE}", False)
    return replace(report, unsaved_warning=_unsaved_warning(setting, setting.stored_record()))


def _unsaved_warning(setting: OidcSetting, stored_setting: OidcSetting | None) -> str:
    columns = set(OidcSetting.table_columns) - INTERNAL_COLUMNS
    if stored_setting is not None and all(getattr(setting, name) == getattr(stored_setting, name) for name in columns):
        return ""
    is_in_use = stored_setting is not None and stored_setting.active
    return connection_warnings.UNSAVED_VALUES_IN_USE if is_in_use else connection_warnings.UNSAVED_VALUES


def _run_test(setting: OidcSetting, callback_url: str, deadline: Deadline) -> TestReport:
    try:
        endpoints = discovery.discover(*setting.pair, discovery.provider_policy(), deadline)
    except discovery.EndpointsNotFound as error:
        requests = tuple((f"Request {number}", url) for number, url in enumerate(error.requested_urls, 1))
        warnings = [*connection_warnings.redirect_uri_warnings(setting, callback_url)]
        if connection_warnings.blocks_all_sign_ins(setting):
            warnings.append(connection_warnings.NOBODY_CAN_SIGN_IN)
        return TestReport(f"The provider was not found. {error.message}", False, requests, tuple(warnings))
    facts = [(name.replace("_", " "), url or "none") for name, url in endpoints.urls.items()]
    facts.append(("algorithms", ", ".join(endpoints.algorithms) or "not advertised"))
    stored_setting = setting.stored_record()
    comparable_setting = stored_setting if stored_setting is not None and stored_setting.pair == setting.pair else None
    risky_change = endpoints.risky_change_since(comparable_setting.endpoints if comparable_setting else None)
    notes: list[str] = []
    versions = ("", "")
    if risky_change:
        notes.append(f"{risky_change} If this is correct, select “Adopt discovered endpoints”.")
    elif comparable_setting is not None:
        versions = _save_endpoints(comparable_setting, endpoints)
        if versions[0] != versions[1]:
            notes.append("The stored endpoints were updated.")
    keys_error = ""
    try:
        keys = key_sets.fetch_key_set(endpoints.jwks_uri, discovery.provider_policy(), deadline)
    except key_sets.UnusableKeySet as error:
        keys_error = f"The provider was found, but its keys cannot be used. {error}"
    else:
        facts += _key_facts(keys)
        notes += _certificate_warnings(keys, setting)
    if connection_warnings.has_callback_path(setting, callback_url):
        notes += connection_warnings.redirect_uri_warnings(setting, callback_url)
    may_send_secret = _may_send_secret(setting, stored_setting, risky_change)
    client_problems, unchecked_notes = client_check.check_client(
        setting, endpoints, deadline, may_send_secret=may_send_secret
    )
    problems = [*_configuration_problems(setting, callback_url, endpoints), *client_problems]
    title = keys_error or _report_title(problems, client_problems)
    notes = [*problems, *notes, *unchecked_notes]
    return TestReport(
        title, not (keys_error or problems), tuple(facts), tuple(notes), may_adopt=bool(risky_change), versions=versions
    )


def _report_title(problems: list[str], client_problems: list[str]) -> str:
    if client_problems:
        return "The provider was found, but it does not accept this service."
    if problems:
        return "The provider was found, but nobody can sign in."
    return "The connection works. No setting was changed."


def _key_facts(keys: key_sets.KeySet) -> Iterator[tuple[str, str]]:
    yield "keys", ", ".join(keys.keys)
    if keys.ignored_keys:
        yield "ignored keys", ", ".join(format_counts(keys.ignored_keys))


def _certificate_warnings(keys: key_sets.KeySet, setting: OidcSetting) -> Iterator[str]:
    kids = set(IdpCertificate.of_pair(*setting.pair).values_list("kid", flat=True))
    if kids and kids != set(keys.keys):
        yield "The stored certificates differ from the provider's current keys. Use “Update certificates”."


def _save_endpoints(stored_setting: OidcSetting, endpoints: discovery.Endpoints) -> tuple[str, str]:
    """Store the endpoints, so that sign-ins do not use outdated ones; return the record's old and new version."""
    tested_version = str(stored_setting.sys_version)
    is_stored = stored_setting.store_endpoints(endpoints)  # sets the new version
    return (tested_version, str(stored_setting.sys_version)) if is_stored else ("", "")


def _may_send_secret(setting: OidcSetting, stored_setting: OidcSetting | None, risky_change: str) -> bool:
    """A user who can change the record but not read its secret must not be able to send it to another server."""
    is_secret_entered = stored_setting is None or setting.client_secret != stored_setting.client_secret
    is_same_server = stored_setting is not None and stored_setting.pair == setting.pair and not risky_change
    return is_secret_entered or is_same_server or not setting.client_secret


def _configuration_problems(setting: OidcSetting, callback_url: str, endpoints: discovery.Endpoints) -> Iterator[str]:
    if not connection_warnings.has_callback_path(setting, callback_url):
        yield from connection_warnings.redirect_uri_warnings(setting, callback_url)
    if endpoints.algorithms and not set(endpoints.algorithms) & set(discovery.SIGNING_ALGORITHMS):
        yield f"The provider supports none of the algorithms {', '.join(discovery.SIGNING_ALGORITHMS)}."
    if connection_warnings.blocks_all_sign_ins(setting):
        yield connection_warnings.NOBODY_CAN_SIGN_IN


def try_script(setting: OidcSetting, claims_text: str) -> TestReport:
    """Run the script in the form on the pasted claims or, if there are none, on those of the last sign-in."""
    stored_setting = setting.stored_record()
    claims: Any = stored_setting.last_sign_in_claims if stored_setting is not None else None
    if claims_text.strip():
        try:
            claims = parse_json(claims_text.encode(errors="surrogatepass")[: MAX_CLAIMS_LENGTH + 1], keeps_digits=False)
        except InvalidJson:
            claims = None
    elif claims is None:
        return TestReport("There are no claims from an earlier sign-in. Enter the claims to use.", False)
    if not isinstance(claims, dict):
        return TestReport(f"The claims must be a JSON object of at most {MAX_CLAIMS_LENGTH // 1024} KB.", False)
    trial = copy(setting)  # the form shows the original again
    trial.needs_approval = saving.is_approval_due(stored_setting, setting)
    warnings = (connection_warnings.APPROVAL_AFTER_SAVE,) if trial.needs_approval and not setting.needs_approval else ()
    return _preview_report(sign_in.preview_sign_in(trial, trial.script, claims), warnings)


def _preview_report(preview: sign_in.SignInPreview, warnings: tuple[str, ...]) -> TestReport:
    rows: list[tuple[str, object]] = [(f"user.{name}", value) for name, value in preview.fields.items()]
    result, refusal = preview.result, preview.refusal
    if result is not None:
        account, change = result.user.login, result.role_change
        rows += [
            ("account", f"{account} (new)" if result.is_new else account),
            ("roles added", ", ".join(change.added) or "none"),
            ("roles removed", ", ".join(change.removed)),
            ("roles a provider cannot grant", ", ".join(change.refused)),
        ]
    else:
        rows += [("account", "none"), ("roles added", "none")]
    facts = tuple((name, str(value)[:MAX_VALUE_LENGTH]) for name, value in rows if value not in ("", None))
    notes = (*(result.notes if result is not None else ()), *warnings)
    if refusal is None:
        return TestReport("This sign-in would succeed. Nothing was changed.", True, facts, notes)
    title = f"This sign-in would be refused: {refusal.code}. {refusal.detail}".strip()
    return TestReport(title, False, facts, notes)
