"""URLs of the accounts app."""

from django.urls import path

from accounts.http import api, pages, tokens
from system.http.error_responses import FOREIGN_ERROR_BODIES

FOREIGN_ERROR_BODIES[tokens.PATH] = tokens.error_body
urlpatterns = [
    path("oauth_token.do", tokens.TokenView.as_view(), name="oauth-token"),
    path("rest/v1/auth/login", api.LoginView.as_view(), name="api-login"),
    path("api/docs/key", api.DocsKeyView.as_view(), name="docs-key"),
    path("api/me", api.ProfileView.as_view(), name="me"),
    path("", pages.StartView.as_view(), name="start"),
    path("login/", pages.SignInView.as_view(), name="login"),
    path("logout/", pages.SignOutView.as_view(), name="logout"),
    path("account/", pages.AccountView.as_view(), name="account"),
    path("account/password/", pages.ChangePasswordView.as_view(), name="account-password"),
    path("account/notifications/", pages.ChooseNotificationsView.as_view(), name="account-notifications"),
    path("account/theme/", pages.ChooseThemeView.as_view(), name="account-theme"),
    path("account/keys/", pages.CreateKeyView.as_view(), name="account-keys"),
    path("account/keys/<slug:sys_id>/revoke/", pages.RevokeKeyView.as_view(), name="account-key-revoke"),
    path("account/sessions/end-others/", pages.EndOtherSessionsView.as_view(), name="account-sessions-end-others"),
    path("account/sessions/<slug:session_key>/end/", pages.EndSessionView.as_view(), name="account-session-end"),
]
