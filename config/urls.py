"""The URLs of the service."""

from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

import tableapi.urls
from accounts.http.pages import SignOutView
from config.api_docs import ApiReference, RedocBundle, SchemaView
from system.monitoring import health, metrics

urlpatterns = [
    *tableapi.urls.urlpatterns,  # first, because patterns are tried in order
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", metrics.Metrics.as_view()),
    # The theme's links lead to the product's own pages for signing out and changing a password.
    path("admin/logout/", SignOutView.as_view()),
    path("admin/password_change/", RedirectView.as_view(pattern_name="account")),
    path("admin/", admin.site.urls),
    path("api/schema", SchemaView.as_view(), name="schema"),
    path("api/docs", ApiReference.as_view(template="pages/swagger.html"), name="docs"),
    path("api/docs/reference", ApiReference.as_view(template="pages/redoc.html"), name="reference"),
    path("api/docs/redoc.js", RedocBundle.as_view(), name="redoc-bundle"),
    path("sso/", include("sso.urls")),
    path("", include("agents.urls")),
    path("", include("collections_app.urls")),
    path("", include("workspace.urls")),
    path("", include("accounts.urls")),
]

handler400 = "system.http.error_responses.bad_request"
handler403 = "system.http.error_responses.access_denied"
handler404 = "system.http.error_responses.not_found"
handler500 = "system.http.error_responses.server_error"
