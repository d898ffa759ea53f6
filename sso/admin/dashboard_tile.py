"""The box of single sign-on on the dashboard."""

from datetime import timedelta

from django.db.models import Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince

from sso.models import CertificatePair, OidcSetting, SignIn
from system.admin_site import dashboard

# Refreshed daily: older than two days, something did not happen.
TOO_OLD = timedelta(days=2)


@dashboard.tile(order=20)
def connection(request: HttpRequest) -> dashboard.Tile | None:
    """The active connection, the age of its certificates, and how many sign-ins failed."""
    if not request.user.has_module_perms("sso"):
        return None
    setting = OidcSetting.active_one()
    failed = SignIn.objects.filter(sys_created_at__gt=timezone.now() - timedelta(days=1)).exclude(outcome=SignIn.OK)
    times = failed.aggregate(times=Sum("times"))["times"] or 0
    failures = f"{times} failed sign-in{'' if times == 1 else 's'} through providers in 24 hours."
    if setting is None:
        address = dashboard.Link("", "", "sso.OidcSetting").address
        return dashboard.Tile("Single sign-on", "Off", f"No connection is active. {failures}", address, "login")
    pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm).first()
    fetched_at = pair.fetched_at if pair else None
    age = f"Certificates are {timesince(fetched_at)} old." if fetched_at else "No certificates yet."
    worries = [
        "It waits for an approval." if setting.needs_approval else "",
        "Its provider needs a look." if setting.resolve_error or (pair and (pair.failure or pair.warning)) else "",
    ]
    said = " ".join(each for each in (*worries, age, failures) if each)
    is_old = fetched_at is not None and timezone.now() - fetched_at > TOO_OLD
    address = reverse("admin:sso_oidcsetting_change", args=[setting.pk])
    return dashboard.Tile("Single sign-on", setting.name, said, address, "login", is_old or any(worries))
