"""Admin pages of document collections, and their entry on everybody's start page."""

from django.http import HttpRequest
from django.urls import reverse

from collections_app.admin import collections, dashboard_tile, documents  # noqa: F401  (each registers what it has)
from system.admin_site import dashboard
from system.http import start_page

dashboard.group(
    "Document collections",
    30,
    dashboard.Link("Collections", "folder_open", "collections_app.Collection"),
    dashboard.Link("Documents", "description", "collections_app.Document"),
)


@start_page.register_entry
def collections_of_documents(request: HttpRequest) -> start_page.Entry | None:
    return start_page.Entry("Collections", "Search documents and add your own.", reverse("collections"))
