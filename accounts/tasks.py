"""Background work of the accounts area."""

from celery import shared_task
from django.db import transaction
from django.utils import timezone

from accounts.authentication.login_attempts import WINDOW
from accounts.models import AccessKey, FailedAttempts, Session


@shared_task
def forget_expired() -> None:
    """Delete what can never be used again: ended sessions, expired keys from sign-ins, old counters."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    AccessKey.objects.filter(kind=AccessKey.LOGIN, expires_at__lt=now).delete()
    # A counter that is being counted right now is skipped: waiting for it could deadlock with its request.
    with transaction.atomic():
        old = FailedAttempts.objects.select_for_update(skip_locked=True).filter(started_at__lt=now - WINDOW)
        FailedAttempts.objects.filter(pk__in=old).delete()
