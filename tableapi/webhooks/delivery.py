"""Sends due deliveries, signed as in Standard Webhooks; failed ones are retried, then parked.

    waiting ──▶ delivered | skipped
       └──▶ parked after three days ──▶ waiting when replayed

Deliveries of one record are sent in order: one waits while an earlier one waits, and is parked behind a parked one.
"""

import base64
import hashlib
import hmac
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from system import outbound
from system.outbound import OutboundError, Policy
from tableapi.models import Webhook, WebhookDelivery, WebhookPosition
from tableapi.models.webhooks import MAX_ANSWER_LENGTH

from . import payload
from .metrics import UNFINISHED_STATES
from .payload import Skipped

logger = structlog.get_logger(__name__)

State = WebhookDelivery.State

MAX_RETRY_PERIOD = timedelta(days=3)
# Seconds before each retry; the last one repeats. Each is shortened or extended by up to a fifth.
RETRY_DELAYS_S = (5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400)
SEND_TIMEOUT_S = 10.0
DELIVERIES_PER_TURN = 10
# How long a webhook rests after its receiver did not answer, so that workers do not spend their time waiting for it.
SILENCE_S = 60.0
# A delivery is tried again after this time if its worker was killed. No lock is held while it is sent, because the
# open transaction would delay the change feed.
LEASE_S = 60.0
SAME_RECORD = {name: OuterRef(name) for name in ("webhook", "table_key", "record_id")}


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt. A waiting delivery is retried."""

    state: State
    reason: str = ""
    status: int | None = None
    answer: str = ""


def send_due(should_stop: Callable[[], bool]) -> bool:
    """Send a few due deliveries of each webhook in turn, and return whether there may be more."""
    while webhook_ids := _webhooks_with_deliveries():
        has_sent = False
        for webhook_id in webhook_ids:
            for _ in range(DELIVERIES_PER_TURN):
                if should_stop():
                    return True
                delivery = _claim(webhook_id)
                if delivery is None:
                    break
                has_sent = True
                attempt(delivery)
        if not has_sent:
            break
    return False


def _webhooks_with_deliveries() -> list[str]:
    """In random order: a run ends after some seconds, so that in a fixed one slow receivers could take up all runs."""
    due = WebhookDelivery.objects.filter(webhook=OuterRef("pk"), state=State.WAITING, due_at__lte=Now())
    ready = Webhook.objects.filter(Exists(due), active=True, user__active=True).exclude(silent_until__gt=Now())
    return list(ready.order_by("?").values_list("pk", flat=True))


def _claim(webhook_id: str) -> WebhookDelivery | None:
    """Return the next due delivery of the webhook, leased, if the webhook may still be called."""
    with transaction.atomic():
        due = WebhookDelivery.objects.filter(
            ~earlier_delivery(state__in=UNFINISHED_STATES), webhook=webhook_id, state=State.WAITING,
            due_at__lte=Now(), webhook__active=True, webhook__user__active=True,
        ).exclude(webhook__silent_until__gt=Now())  # fmt: skip
        locked = due.select_for_update(skip_locked=True, of=("self",)).select_related("webhook__user", "webhook__table")
        delivery = locked.order_by("due_at", "pk").first()
        if delivery is not None:
            _begin_attempt(delivery)
    return delivery


def earlier_delivery(**conditions: Any) -> Exists:
    """Whether an earlier delivery of the same record meets the conditions."""
    return Exists(WebhookDelivery.objects.filter(pk__lt=OuterRef("pk"), **SAME_RECORD, **conditions))


def _begin_attempt(delivery: WebhookDelivery) -> None:
    delivery.attempts += 1
    delivery.first_attempt_at = delivery.first_attempt_at or timezone.now()
    delivery.attempted_at, delivery.due_at = Now(), Now() + timedelta(seconds=LEASE_S)
    delivery.save(update_fields=["attempts", "first_attempt_at", "attempted_at", "due_at"])


def attempt(delivery: WebhookDelivery) -> Outcome:
    """Send the delivery once, and record the outcome unless another worker has taken it over."""
    started_at = time.monotonic()
    try:
        body = payload.build(delivery)
        if time.monotonic() - started_at > LEASE_S / 2:
            raise TimeoutError
        outcome = _send(delivery.webhook, str(delivery), body)
    except Skipped as skipped:
        outcome = Outcome(State.SKIPPED, str(skipped))
    except Exception as error:
        outcome = Outcome(State.WAITING, f"Internal error: {type(error).__name__}.")
    _record_outcome(delivery, outcome)
    _record_silence(delivery.webhook, outcome)
    return outcome


def policy() -> Policy:
    limits: dict[str, Any] = {"total_s": SEND_TIMEOUT_S, "max_body_bytes": MAX_ANSWER_LENGTH, "cuts_body": True}
    return Policy(**settings.WEBHOOK_POLICY, **limits, allow_any_port=True)


def _send(webhook: Webhook, message_id: str, body: bytes) -> Outcome:
    try:
        response = outbound.post_json(webhook.url, body, policy(), headers=_signed_headers(webhook, message_id, body))
    except OutboundError as error:
        return Outcome(State.WAITING, error.message)
    answer = response.body.decode(errors="replace").replace("\x00", "\ufffd")
    if 200 <= response.status < 300:
        return Outcome(State.DELIVERED, "", response.status, answer)
    return Outcome(State.WAITING, f"The receiver responded with {response.status}.", response.status, answer)


def _signed_headers(webhook: Webhook, message_id: str, body: bytes) -> dict[str, str]:
    timestamp = str(int(time.time()))
    signed = f"{message_id}.{timestamp}.".encode() + body
    digests = [hmac.digest(key, signed, hashlib.sha256) for key in webhook.signing_keys()]
    signatures = " ".join("v1," + base64.b64encode(digest).decode() for digest in digests)
    return {"webhook-id": message_id, "webhook-timestamp": timestamp, "webhook-signature": signatures}


def _record_outcome(delivery: WebhookDelivery, outcome: Outcome) -> None:
    state, due_in = outcome.state, None
    if delivery.operation == payload.TEST_OPERATION:
        state = State.FAILED if state == State.WAITING else state
    elif state == State.WAITING:
        assert delivery.first_attempt_at is not None
        delay_s = RETRY_DELAYS_S[min(delivery.attempts, len(RETRY_DELAYS_S)) - 1]
        due_in = timedelta(seconds=delay_s * random.uniform(0.8, 1.2))  # noqa: S311  (spreads the retries)
        if timezone.now() + due_in > delivery.first_attempt_at + MAX_RETRY_PERIOD:
            state, due_in = State.PARKED, None
    if outcome.state == State.WAITING:
        logger.warning("webhook_failed", webhook=delivery.webhook_id, status=outcome.status, state=state.value)
    claimed = WebhookDelivery.objects.filter(pk=delivery.pk, state=State.WAITING, attempts=delivery.attempts)
    due_at = None if due_in is None else Now() + due_in
    claimed.update(state=state, reason=outcome.reason, status=outcome.status, answer=outcome.answer, due_at=due_at)


def _record_silence(webhook: Webhook, outcome: Outcome) -> None:
    is_silent = outcome.state == State.WAITING and outcome.status is None
    if is_silent or webhook.silent_until is not None:
        silent_until = Now() + timedelta(seconds=SILENCE_S) if is_silent else None
        Webhook.objects.filter(pk=webhook.pk).update(silent_until=silent_until)


def send_test(webhook: Webhook) -> Outcome:
    """Send a body without a record, once."""
    delivery = WebhookDelivery.objects.create(webhook=webhook, operation=payload.TEST_OPERATION)
    delivery.refresh_from_db()  # the database has chosen the id of the message
    _begin_attempt(delivery)
    return attempt(delivery)


def park_followers() -> None:
    """Park deliveries that wait behind a parked one. Requires the lock of the position, as `replay`."""
    rows = WebhookDelivery.objects.filter(earlier_delivery(state=State.PARKED), state=State.WAITING)
    rows.update(state=State.PARKED, due_at=None, reason="An earlier delivery of this record is parked.")


def replay(deliveries: "QuerySet[WebhookDelivery]") -> int:
    """Send parked deliveries again, with all other parked ones of the same records, in order."""
    chosen = WebhookDelivery.objects.filter(pk__in=deliveries.values("pk"), state=State.PARKED, **SAME_RECORD)
    with transaction.atomic():
        WebhookPosition.objects.select_for_update().first()
        rows = WebhookDelivery.objects.filter(Exists(chosen), state=State.PARKED)
        return rows.update(state=State.WAITING, due_at=Now(), attempts=0, first_attempt_at=None, reason="")
