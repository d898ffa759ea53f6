"""Admin pages of single sign-on."""

from sso.admin import connections, lists, tile, users, welcome_page  # noqa: F401  (each registers what it has)
from system import dashboard

dashboard.group(
    "Single sign-on",
    20,
    dashboard.Link("OIDC settings", "login", "sso.OidcSetting"),
    dashboard.Link("IdP certificates", "key_vertical", "sso.IdpCertificate"),
    dashboard.Link("Identity links", "link", "sso.IdentityLink"),
    dashboard.Link("Sign-ins", "receipt_long", "sso.SignIn"),
)
