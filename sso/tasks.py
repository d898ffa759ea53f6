"""Background work of single sign-on."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from sso.connections import certificate_updates
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, SignIn
from sso.provider import discovery

LOG_KEPT_FOR = timedelta(days=90)
BATCH = 1000


@shared_task
def refresh_daily() -> None:
    """Refresh the endpoints and certificates of the active connection."""
    setting = OidcSetting.active_one()
    if setting is None:
        return
    discovery.rediscover(setting)
    endpoints = setting.endpoints
    if endpoints is None:
        return
    try:
        certificate_updates.refresh(*setting.pair, endpoints.jwks, reason=certificate_updates.DAILY)
    except certificate_updates.CertificateUpdateFailed:
        pass  # logged there, and shown on the form and the dashboard


@shared_task
def forget_old_sign_ins() -> None:
    """Delete entries of the sign-in log after 90 days."""
    old = SignIn.objects.filter(sys_created_at__lt=timezone.now() - LOG_KEPT_FOR).order_by("sys_id")
    while ids := list(old.values_list("pk", flat=True)[:BATCH]):
        SignIn.objects.filter(pk__in=ids).delete()


@shared_task
def forget_ended_sessions() -> None:
    """Delete provider sessions whose session has ended, and sign-outs that no valid token can precede."""
    ProviderSession.forget_ended()
    ProviderSignOut.forget_old()
