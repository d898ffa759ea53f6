"""Admin pages of single sign-on, with their sidebar links and dashboard tile."""

from datetime import timedelta

from django.db.models import Sum
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince

from sso.admin import connection_warnings, connections, sign_in_records  # noqa: F401  (register)
from sso.models import CertificatePair, OidcSetting, SignIn
from system.admin_site import dashboard

dashboard.register_links(
    "Single sign-on",
    20,
    dashboard.Link("OIDC settings", "login", "sso.OidcSetting"),
    dashboard.Link("IdP certificates", "key_vertical", "sso.IdpCertificate"),
    dashboard.Link("Identity links", "link", "sso.IdentityLink"),
    dashboard.Link("Sign-ins", "receipt_long", "sso.SignIn"),
)


@dashboard.register_step(order=10, app="sso")
def connection_step() -> dashboard.Step:
    is_connected = OidcSetting.get_active() is not None
    return dashboard.Step("Connect single sign-on", reverse("admin:sso_oidcsetting_changelist"), is_connected)


@dashboard.register_tile(order=20)
def connection_tile(request: HttpRequest) -> dashboard.Tile | None:
    """The active connection, the age of its certificates, and the number of failed sign-ins."""
    if not request.user.has_module_perms("sso"):
        return None
    setting = OidcSetting.get_active()
    failures = SignIn.objects.filter(sys_created_at__gt=timezone.now() - timedelta(days=1)).exclude(outcome=SignIn.OK)
    count = failures.aggregate(count=Sum("times"))["count"] or 0
    failure_summary = f"{count} failed provider sign-in{'' if count == 1 else 's'} in the last 24 hours."
    if setting is None:
        url = reverse("admin:sso_oidcsetting_changelist")
        return dashboard.Tile("Single sign-on", "Off", f"No connection is active. {failure_summary}", url, "login")
    pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm).first()
    fetched_at = pair.fetched_at if pair else None
    certificate_status = f"Certificates updated {timesince(fetched_at)} ago." if fetched_at else "No certificates yet."
    warnings = [
        "Approval required." if setting.needs_approval else "",
        "Check the provider." if setting.resolve_error or (pair and (pair.failure or pair.warning)) else "",
    ]
    text = " ".join(sentence for sentence in (*warnings, certificate_status, failure_summary) if sentence)
    is_outdated = fetched_at is not None and timezone.now() - fetched_at > connection_warnings.MAX_CERTIFICATE_AGE
    url = reverse("admin:sso_oidcsetting_change", args=[setting.pk])
    return dashboard.Tile("Single sign-on", setting.name, text, url, "login", is_outdated or any(warnings))
