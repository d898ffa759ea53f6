"""Admin pages of single sign-on."""

from sso.admin import connections, cross_app_warnings, dashboard_tile, sign_in_records, welcome_page_warnings  # noqa: F401  (each registers what it has)
from system.admin_site import dashboard

dashboard.group(
    "Single sign-on",
    20,
    dashboard.Link("OIDC settings", "login", "sso.OidcSetting"),
    dashboard.Link("IdP certificates", "key_vertical", "sso.IdpCertificate"),
    dashboard.Link("Identity links", "link", "sso.IdentityLink"),
    dashboard.Link("Sign-ins", "receipt_long", "sso.SignIn"),
)
