"""Background tasks of single sign-on."""

from contextlib import suppress
from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from sso.connections import certificate_updates
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, SignIn
from sso.provider import discovery

SIGN_IN_LOG_RETENTION = timedelta(days=90)
DELETE_BATCH_SIZE = 1000


@shared_task
def refresh_daily() -> None:
    """Refresh the endpoints and certificates of the active connection."""
    setting = OidcSetting.get_active()
    if setting is None:
        return
    discovery.rediscover(setting)
    if setting.endpoints is None:
        return
    with suppress(certificate_updates.CertificateUpdateFailed):  # already logged, and shown on the form and dashboard
        certificate_updates.refresh_certificates(setting, trigger=certificate_updates.TRIGGER_DAILY)


@shared_task
def forget_old_sign_ins() -> None:
    """Delete sign-in log entries that are older than 90 days."""
    old_sign_ins = SignIn.objects.filter(sys_created_at__lt=timezone.now() - SIGN_IN_LOG_RETENTION).order_by("sys_id")
    while ids := list(old_sign_ins.values_list("pk", flat=True)[:DELETE_BATCH_SIZE]):
        SignIn.objects.filter(pk__in=ids).delete()


@shared_task
def forget_ended_sessions() -> None:
    """Delete provider sessions whose session has ended, and sign-outs that are older than any valid token."""
    ProviderSession.delete_ended()
    ProviderSignOut.delete_old()
