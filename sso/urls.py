"""URLs of single sign-on; those of mozilla-django-oidc are not used."""

from django.urls import path

from sso.http import logout, views

app_name = "sso"
urlpatterns = [
    path("start/", views.StartSignInView.as_view(), name="start"),
    path("callback/", views.CallbackView.as_view(), name="callback"),
    path("logout/", logout.LogoutView.as_view(), name="logout"),
    path("backchannel-logout/", logout.BackchannelLogoutView.as_view(), name="backchannel_logout"),
]
