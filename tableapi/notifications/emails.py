"""Sends due notifications by email; failed attempts are retried later."""

import smtplib
from datetime import timedelta
from typing import Any

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models.functions import Now

from accounts.models import User
from accounts.models.notification_choices import Reason
from tableapi.catalogue.definitions import Catalogue
from tableapi.models import Notification
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller

from .listing import entries_of

logger = structlog.get_logger(__name__)

MAX_ATTEMPTS = 8
FIRST_RETRY_DELAY = timedelta(minutes=2)
MAX_EMAILS_PER_RUN = 200
SUBJECTS = {
    Reason.ASSIGNED: "{} was assigned to you",
    Reason.MENTIONED: "You were mentioned in a comment on {}",
    Reason.COMMENTED: "New comment on {}",
    Reason.CHANGED: "{} has changed",
}


def send_due_emails() -> None:
    """Send due emails. Stop at the first error of the mail server, because others would probably fail too."""
    for _ in range(MAX_EMAILS_PER_RUN):
        if not _send_next():
            return


def _send_next() -> bool:
    """Send one email and return whether to continue. If the process is killed before the update, it is sent again."""
    row = _claim_next()
    if row is None:
        return False
    try:
        message = _build_email(row) if row.read_at is None and row.user.active and row.user.email else None
        if message is not None:
            message.send()
    except Exception as error:
        is_last = row.email_attempts >= MAX_ATTEMPTS
        logger.warning("email_failed", kind=type(error).__name__, attempts=row.email_attempts, is_last=is_last)
        return not isinstance(error, smtplib.SMTPException | OSError)
    Notification.objects.filter(pk=row.pk).update(email_at=None, email_attempts=0)
    return True


def _claim_next() -> Notification | None:
    """Return the next due email, already scheduled for a retry, so that no lock is held while it is sent."""
    with transaction.atomic():
        due = Notification.objects.filter(email_at__lte=Now()).order_by("email_at")
        row = due.select_for_update(skip_locked=True, of=("self",)).select_related("user").first()
        if row is not None:
            row.email_attempts += 1
            is_last = row.email_attempts >= MAX_ATTEMPTS
            row.email_at = None if is_last else Now() + FIRST_RETRY_DELAY * 2 ** (row.email_attempts - 1)
            row.save(update_fields=["email_at", "email_attempts"])
    return row


@on_current_catalogue
def _build_email(catalogue: Catalogue, row: Notification) -> EmailMessage | None:
    user: User = row.user
    context = Caller.of(user).context(catalogue)
    entry = entries_of(context, [row]).get(row.pk)
    if entry is None:
        return None
    name = " ".join(str(entry["display_value"] or entry["record"]).split())[:100]
    subject = SUBJECTS[Reason(entry["reason"])].format(name)
    return EmailMessage(subject, _body(entry), settings.DEFAULT_FROM_EMAIL, [user.email])


def _body(entry: dict[str, Any]) -> str:
    detail = entry["comment"]["text"] if "comment" in entry else f"Changed: {', '.join(entry['columns'])}"
    lines = [detail, "", f"Table: {entry['table']}", f"Record: {entry['record']}"]
    if settings.BASE_URL:
        lines += ["", f"Change your notification settings: {settings.BASE_URL}/account/"]
    return "\n".join(lines)
