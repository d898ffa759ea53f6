"""Updates the stored keys of providers as specified.

    take a number ──▶ fetch, outside any transaction ──▶ lock the pair ──▶ add, keep, remove ──▶ record the outcome

"(1) certificates not yet stored are added; (2) stored certificates are not modified; (3) stored certificates absent
from the response are removed and recorded in the Record Deletion Log." An unusable response changes nothing.
"""

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from sso.models import CertificatePair, IdpCertificate, OidcSetting
from sso.provider.discovery import provider_policy
from sso.tokens import key_sets
from sso.tokens.key_sets import KeySet, UnusableKeySet, thumbprint
from system.outbound import Policy
from system.outbound.deadline import Deadline

logger = structlog.get_logger(__name__)

# "An unknown kid fetches at most once per 30 s and pair across all processes."
UNKNOWN_KID_INTERVAL = timedelta(seconds=30)
# How long a caller waits for a request in progress: the time limit of the request and one second.
MAX_WAIT_S = Policy().total_s + 1
POLL_INTERVAL_S = 0.1
UPDATE_FAILED = "The certificate update failed. Check the connection settings."
TRIGGER_FORM, TRIGGER_DAILY, TRIGGER_SIGN_IN = "form", "daily", "sign_in"


class CertificateUpdateFailed(Exception):
    """An update failed without changes; the text is the specified message and the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"{UPDATE_FAILED} {reason}")
        self.reason = reason


@dataclass(frozen=True)
class UpdateOutcome:
    """The numbers of added, unchanged and removed keys, the ignored keys, and a warning for the administrator."""

    added: int = 0
    unchanged: int = 0
    removed: int = 0
    ignored_keys: tuple[str, ...] = ()
    warning: str = ""

    def __str__(self) -> str:
        sentences = [f"{self.added} added, {self.unchanged} unchanged, {self.removed} removed."]
        if self.ignored_keys:
            sentences.append(f"Ignored: {', '.join(format_counts(self.ignored_keys))}.")
        return " ".join([*sentences, self.warning]).rstrip()


def format_counts(kinds: tuple[str, ...]) -> list[str]:
    """
    >>> format_counts(("a private key", "a symmetric key", "a private key"))
    ['a private key (2)', 'a symmetric key']
    """
    return [kind if times == 1 else f"{kind} ({times})" for kind, times in Counter(kinds).items()]


def signing_keys(setting: OidcSetting) -> list[dict[str, Any]]:
    """The stored keys of the connection's pair, with the kids under which they are stored."""
    return [{**row.json, "kid": row.kid} for row in IdpCertificate.of_pair(*setting.pair)]


def refresh_certificates(setting: OidcSetting, *, trigger: str, deadline: Deadline | None = None) -> UpdateOutcome:
    """Fetch the provider's keys and update the stored ones; raises `CertificateUpdateFailed`."""
    log = logger.bind(url_idp=setting.url_idp, realm=setting.realm, trigger=trigger)
    request_number = _next_request_number(*setting.pair)
    try:
        key_set = key_sets.fetch_key_set(setting.jwks_uri, provider_policy(), deadline)
    except UnusableKeySet as error:
        pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm)
        pair.update(failure=str(error), answered_at=Now())
        log.warning("certificate_update_failed", error=str(error))
        raise CertificateUpdateFailed(str(error)) from None
    outcome = _apply_key_set(*setting.pair, key_set, request_number)
    log.info("certificates_updated", added=outcome.added, removed=outcome.removed)
    return outcome


def refresh_for_unknown_kid(
    setting: OidcSetting, deadline: Deadline | None = None, *, is_unsolicited: bool = False
) -> bool:
    """Fetch keys for a token with an unknown kid; return whether the caller should check the token again.

    "A pair with no stored key is fetched at once; otherwise an unknown kid fetches at most once per 30 s." Anyone can
    send unsolicited tokens: for these the limit always applies, and the caller never waits.
    """
    if setting.endpoints is None:
        return False
    pair, _ = CertificatePair.objects.get_or_create(url_idp=setting.url_idp, realm=setting.realm)
    is_rate_limited = is_unsolicited or IdpCertificate.of_pair(*setting.pair).exists()
    if is_rate_limited and not _reserve_request(pair):
        return not is_unsolicited and _wait_for_other_request(pair, deadline or Deadline.after(MAX_WAIT_S))
    try:
        refresh_certificates(setting, trigger=TRIGGER_SIGN_IN, deadline=deadline)
    except CertificateUpdateFailed:
        return False
    return True


def unknown_key_reason(setting: OidcSetting) -> str:
    """Return why the provider's current keys are unknown, or an empty string if they are stored."""
    pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm).first()
    if pair is None:
        return "The provider's keys have never been fetched."
    requested_at, answered_at = pair.asked_for_unknown_at, pair.answered_at
    if requested_at is not None and (answered_at is None or answered_at < requested_at):
        return "Another request for the provider's keys is still in progress."
    return pair.failure


def _reserve_request(pair: CertificatePair) -> bool:
    """Whether this caller may make the request; the database decides for all processes."""
    # By the database's clock. A time in the future dates from before the clock was set back.
    recent_range = (Now() - UNKNOWN_KID_INTERVAL, Now() + UNKNOWN_KID_INTERVAL)
    due_pairs = CertificatePair.objects.filter(pk=pair.pk).exclude(asked_for_unknown_at__range=recent_range)
    return bool(due_pairs.update(asked_for_unknown_at=Now()))


def _wait_for_other_request(pair: CertificatePair, deadline: Deadline) -> bool:
    """Wait while another caller fetches the keys, which may include the missing one; return whether it waited."""
    wait_until = deadline.for_step(MAX_WAIT_S).at
    is_pending = Q(answered_at=None) | Q(answered_at__lt=F("asked_for_unknown_at"))
    is_recent = Q(asked_for_unknown_at__gt=Now() - timedelta(seconds=MAX_WAIT_S))
    has_waited = False
    while CertificatePair.objects.filter(is_pending, is_recent, pk=pair.pk).exists() and time.monotonic() < wait_until:
        has_waited = True
        time.sleep(POLL_INTERVAL_S)
    return has_waited


def _next_request_number(url_idp: str, realm: str) -> int:
    """Return a number that shows which of two requests is newer."""
    with transaction.atomic():
        pair = CertificatePair.get_locked(url_idp, realm)
        pair.last_drawn += 1
        pair.save(update_fields=["last_drawn"])
    return pair.last_drawn


def _apply_key_set(url_idp: str, realm: str, key_set: KeySet, request_number: int) -> UpdateOutcome:
    with transaction.atomic():
        pair = CertificatePair.get_locked(url_idp, realm)
        stored_keys = {row.kid: row for row in IdpCertificate.of_pair(url_idp, realm)}
        if not OidcSetting.objects.filter(url_idp=url_idp, realm=realm).exists():
            return UpdateOutcome()  # the pair's last connection was deleted during the request, and its keys with it
        if request_number < pair.last_applied:
            # A later request was answered sooner, so this response is outdated.
            CertificatePair.objects.filter(pk=pair.pk).update(answered_at=Now())
            return UpdateOutcome(unchanged=len(stored_keys), ignored_keys=key_set.ignored_keys)
        outcome = _update_keys(url_idp, realm, stored_keys, key_set)
        pair.last_applied, pair.fetched_at, pair.answered_at = request_number, Now(), Now()
        pair.failure, pair.warning = "", outcome.warning
        pair.save()
    return outcome


def _update_keys(url_idp: str, realm: str, stored_keys: Mapping[str, IdpCertificate], key_set: KeySet) -> UpdateOutcome:
    new_kids = [kid for kid in key_set.keys if kid not in stored_keys]
    absent_kids = [kid for kid in stored_keys if kid not in key_set.keys and kid not in key_set.kids]
    for kid in new_kids:
        IdpCertificate(kid=kid, url_idp=url_idp, realm=realm, json=key_set.keys[kid]).save()
    for kid in absent_kids:
        stored_keys[kid].delete()
    remaining_keys = {kid: row for kid, row in stored_keys.items() if kid not in absent_kids}
    warning = _changed_key_warning(remaining_keys, key_set)
    return UpdateOutcome(len(new_kids), len(remaining_keys), len(absent_kids), key_set.ignored_keys, warning)


def _changed_key_warning(remaining_keys: Mapping[str, IdpCertificate], key_set: KeySet) -> str:
    """ "A key changed under its old kid stays as stored and is shown as a warning." """
    changed_kids = [
        f"“{kid}”"
        for kid, row in remaining_keys.items()
        if kid not in key_set.keys or thumbprint(key_set.keys[kid]) != thumbprint(row.json)
    ]
    if not changed_kids:
        return ""
    return (
        f"The provider publishes different keys with key IDs that are already stored: {', '.join(changed_kids)}. The "
        "stored keys were not changed. If the new keys are correct, delete the stored ones under IdP certificates. "
        "Then update the certificates."
    )
