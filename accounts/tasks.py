"""Background tasks of the accounts app."""

from celery import shared_task
from django.db import transaction
from django.utils import timezone

from accounts.authentication.login_attempts import FAILURE_WINDOW
from accounts.models import AccessKey, FailedAttempts, Session


@shared_task
def forget_expired() -> None:
    """Deletes expired sessions, expired keys of API sign-ins and old counters."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    AccessKey.objects.filter(kind=AccessKey.KIND_LOGIN, expires_at__lt=now).delete()
    # A locked counter is skipped: waiting for it could deadlock with its request.
    with transaction.atomic():
        expired = FailedAttempts.objects.select_for_update(skip_locked=True).filter(started_at__lt=now - FAILURE_WINDOW)
        FailedAttempts.objects.filter(pk__in=expired).delete()
