"""Background work of single sign-on."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from sso.connections import certificate_updates
from sso.models import OidcSetting, ProviderSession, ProviderSignOut, SignIn
from sso.provider import discovery

LOG_KEPT_FOR = timedelta(days=90)
AT_ONCE = 1000


@shared_task
def refresh_daily() -> None:
    """Look for the active connection's provider again and bring its certificates up to date."""
    setting = OidcSetting.active_one()
    if setting is None:
        return
    discovery.look_again(setting)
    known = setting.endpoints
    if known is None:
        return
    try:
        certificate_updates.refresh(*setting.pair, known.jwks, reason=certificate_updates.DAILY)
    except certificate_updates.CertificateUpdateFailed:
        pass  # logged there, and shown on the form and the dashboard


@shared_task
def forget_old_sign_ins() -> None:
    """Entries of the sign-in log go after 90 days."""
    old = SignIn.objects.filter(sys_created_at__lt=timezone.now() - LOG_KEPT_FOR).order_by("sys_id")
    while found := list(old.values_list("pk", flat=True)[:AT_ONCE]):
        SignIn.objects.filter(pk__in=found).delete()


@shared_task
def forget_ended_sessions() -> None:
    """What is kept of a sign-in goes with its session; what is kept of a sign-out, when no token of its time counts."""
    ProviderSession.forget_ended()
    ProviderSignOut.forget_old()
