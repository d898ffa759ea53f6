"""What the buttons that change no setting find out: Test connection, Try the script."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace

from sso.admin import connection_warnings
from sso.connections import approval
from sso.connections.certificate_updates import counted
from sso.models import IdpCertificate, OidcSetting
from sso.models.provider_state import OWN_COLUMNS
from sso.provider import client_check, discovery, request_slots
from sso.provisioning import sign_in
from sso.tokens import key_sets
from system.outbound import OutboundError, parse_json
from system.outbound.deadline import Deadline

LONGEST_CLAIMS = 256 * 1024
LONGEST_SHOWN = 500
NOBODY = "nobody could sign in"


@dataclass(frozen=True)
class TestReport:
    """A box on the form: a sentence, what was found by name, and what to look at."""

    title: str
    is_good: bool
    found: tuple[tuple[str, str], ...] = ()
    doubts: tuple[str, ...] = ()
    may_adopt: bool = False
    # The version of the record that was looked at, and the one that keeps what was found.
    versions: tuple[str, str] = ("", "")
    # Said where what was looked at is not what sign-ins use.
    unsaved: str = ""


def connection(setting: OidcSetting, callback: str) -> TestReport:
    """Resolve and fetch everything, for what is typed in the form; `callback` is where sign-ins arrive."""
    try:
        with request_slots.request_slot():
            report = _looked_at(setting, callback, Deadline.after(discovery.ALTOGETHER_S))
    except request_slots.NoSlotFree:
        return TestReport(f"Nothing was tested. {request_slots.NONE_FREE}", False)
    return replace(report, unsaved=_about_unsaved(setting, stored_of(setting)))


def _about_unsaved(setting: OidcSetting, stored: OidcSetting | None) -> str:
    typed = set(OidcSetting.table_columns) - OWN_COLUMNS
    if stored is not None and all(getattr(setting, name) == getattr(stored, name) for name in typed):
        return ""
    return connection_warnings.UNSAVED_IN_USE if stored is not None and stored.active else connection_warnings.UNSAVED


def _looked_at(setting: OidcSetting, callback: str, deadline: Deadline) -> TestReport:
    try:
        found = discovery.resolve(*setting.pair, discovery.policy(), deadline)
    except discovery.EndpointsNotFound as error:
        tried = tuple((f"Asked {number}", address) for number, address in enumerate(error.tried, 1))
        doubts = tuple(_known_beforehand(setting, callback))
        return TestReport(f"The provider was not found. {error.sentence}", False, tried, doubts)
    facts = [(name.replace("_", " "), address or "none") for name, address in found.addresses.items()]
    facts.append(("algorithms", ", ".join(found.algorithms) or "not said"))
    stored = stored_of(setting)
    moved = _moved(setting, stored, found)
    doubts = (f"{moved} Adopt the found endpoints if this is right.",) if moved else ()
    versions = _kept(setting, stored, found) if not moved else ("", "")
    if versions[0] != versions[1]:
        doubts = ("What this record keeps of the provider was brought up to date.",)
    unusable = ""
    try:
        keys = key_sets.fetch(found.jwks, discovery.policy(), deadline)
    except key_sets.Unusable as error:
        unusable = f"its keys cannot be used. {error}"
    else:
        facts += _told(keys)
        doubts = (*doubts, *_differ(keys, setting))
    if connection_warnings.leads_to(setting, callback):
        doubts = (*doubts, *connection_warnings.about_redirect_uri(setting, callback))
    verdict = client_check.check(setting, found, deadline, may_send_secret=_may_send_secret(setting, stored, moved))
    problems = (*_why_nobody_comes_in(setting, callback, found), *verdict.problems)
    title = _title(unusable, problems, verdict)
    said = (*problems, *doubts, *verdict.doubts)
    return TestReport(title, not (unusable or problems), tuple(facts), said, may_adopt=bool(moved), versions=versions)


def _title(unusable: str, problems: tuple[str, ...], verdict: client_check.Verdict) -> str:
    if unusable:
        return f"The provider was found, but {unusable}"
    if problems:
        return f"The provider was found, but {'it does not accept this service' if verdict.problems else NOBODY}."
    return "The connection works. No setting was changed."


def _told(keys: key_sets.KeySet) -> Iterator[tuple[str, str]]:
    yield "keys", ", ".join(keys.keys)
    if keys.skipped:
        yield "keys left out", ", ".join(counted(keys.skipped))


def _differ(keys: key_sets.KeySet, setting: OidcSetting) -> Iterator[str]:
    kids = set(IdpCertificate.of_pair(*setting.pair).values_list("kid", flat=True))
    if kids and kids != set(keys.keys):
        yield "The stored certificates are others. Update certificates brings them up to date."


def _kept(setting: OidcSetting, stored: OidcSetting | None, found: discovery.Endpoints) -> tuple[str, str]:
    """What the daily look would keep is kept at once: else sign-ins go by what this test has just seen to be old."""
    if stored is None or stored.pair != setting.pair:
        return ("", "")
    read = str(stored.sys_version)
    is_kept = stored.store_endpoints(found)  # which notes the new version
    return (read, str(stored.sys_version)) if is_kept else ("", "")


def _moved(setting: OidcSetting, stored: OidcSetting | None, found: discovery.Endpoints) -> str:
    known = stored.endpoints if stored is not None and stored.pair == setting.pair else None
    return found.moved_from(known) if known is not None else ""


def _may_send_secret(setting: OidcSetting, stored: OidcSetting | None, moved: str) -> bool:
    """Whoever may change the record, but not read the secret, must not have it sent to a server of their own."""
    is_typed = stored is None or setting.client_secret != stored.client_secret
    is_where_it_belongs = stored is not None and stored.pair == setting.pair and not moved
    return is_typed or is_where_it_belongs or not setting.client_secret


def _known_beforehand(setting: OidcSetting, callback: str) -> Iterator[str]:
    """What is told at once, although nothing more can be found out until the provider is there."""
    yield from connection_warnings.about_redirect_uri(setting, callback)
    if connection_warnings.lets_nobody_in(setting):
        yield connection_warnings.NOBODY


def _why_nobody_comes_in(setting: OidcSetting, callback: str, found: discovery.Endpoints) -> Iterator[str]:
    if not connection_warnings.leads_to(setting, callback):
        yield from connection_warnings.about_redirect_uri(setting, callback)
    if found.algorithms and not set(found.algorithms) & set(discovery.SIGNING_ALGORITHMS):
        yield f"It signs with none of {', '.join(discovery.SIGNING_ALGORITHMS)}."
    if connection_warnings.lets_nobody_in(setting):
        yield connection_warnings.NOBODY


def script(setting: OidcSetting, claims_text: str) -> TestReport:
    """The typed script on pasted claims or, with none pasted, on those of the last sign-in."""
    stored = stored_of(setting)
    if claims_text.strip():
        try:
            claims = parse_json(claims_text.encode(errors="surrogatepass")[: LONGEST_CLAIMS + 1])
        except OutboundError:
            return TestReport("The claims are no JSON object.", False)
    else:
        claims = stored.known_claims if stored is not None else None
        if claims is None:
            return TestReport("There is no earlier sign-in to take claims from: paste some.", False)
    if not isinstance(claims, dict):
        return TestReport("The claims are no JSON object.", False)
    tried = copy(setting)  # its form is shown again, with what is stored
    tried.needs_approval = approval.is_due(stored, setting)
    waits = (connection_warnings.ONCE_SAVED,) if tried.needs_approval and not setting.needs_approval else ()
    return _previewed(sign_in.preview(tried, tried.script, claims), waits)


def stored_of(setting: OidcSetting) -> OidcSetting | None:
    return OidcSetting.objects.filter(pk=setting.pk).first() if not setting.is_new else None


def _previewed(found: sign_in.Preview, waits: tuple[str, ...]) -> TestReport:
    account = f"{found.user.login} (new)" if found.user and found.is_new else found.user and found.user.login
    rows: list[tuple[str, object]] = [
        *((f"user.{name}", value) for name, value in found.fields.items()),
        ("account", account or "none"),
        ("roles added", ", ".join(found.roles_added) or "none"),
        ("roles taken away", ", ".join(found.roles_removed)),
        ("roles never given from outside", ", ".join(found.roles_refused)),
    ]
    facts = tuple((name, shown(value)) for name, value in rows if value not in ("", None))
    if found.refusal is None:
        return TestReport("This sign-in would go on. Nothing was changed.", True, facts, (*found.notes, *waits))
    why = f"{found.refusal.code}. {found.refusal.detail}".strip()
    return TestReport(f"This sign-in would be refused: {why}", False, facts, (*found.notes, *waits))


def shown(value: object) -> str:
    return str(value)[:LONGEST_SHOWN]
