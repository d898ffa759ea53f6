"""URLs of the accounts app."""

from django.urls import path

from accounts.http import api, pages

urlpatterns = [
    path("rest/v1/auth/login", api.Login.as_view(), name="api-login"),
    path("api/me", api.Me.as_view(), name="me"),
    path("", pages.Start.as_view(), name="start"),
    path("login/", pages.SignIn.as_view(), name="login"),
    path("logout/", pages.SignOut.as_view(), name="logout"),
    path("account/", pages.Account.as_view(), name="account"),
    path("account/password/", pages.ChangePassword.as_view(), name="account-password"),
    path("account/keys/", pages.CreateKey.as_view(), name="account-keys"),
    path("account/keys/<slug:sys_id>/revoke/", pages.RevokeKey.as_view(), name="account-key-revoke"),
    path("account/sessions/<slug:session>/end/", pages.EndSession.as_view(), name="account-session-end"),
]
