"""Background tasks of the accounts app."""

from celery import shared_task
from django.db import transaction
from django.db.models.functions import Now

from accounts.authentication.login_attempts import FAILURE_WINDOW
from accounts.models import AccessKey, FailedAttempts, Session


@shared_task
def forget_expired() -> None:
    """Deletes expired sessions, expired temporary keys and old counters, by the database's clock."""
    Session.objects.filter(expire_date__lt=Now()).delete()
    AccessKey.objects.filter(kind__in=AccessKey.TEMPORARY_KINDS, expires_at__lt=Now()).delete()
    # A locked counter is skipped: waiting for it could deadlock with its request.
    with transaction.atomic():
        expired_counters = FailedAttempts.objects.select_for_update(skip_locked=True).filter(
            started_at__lt=Now() - FAILURE_WINDOW
        )
        FailedAttempts.objects.filter(pk__in=expired_counters).delete()
