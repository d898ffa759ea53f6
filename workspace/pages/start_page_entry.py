"""The workspace's link on the start page."""

from django.http import HttpRequest
from django.urls import reverse

from system.http import start_page


@start_page.register_entry
def tables_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    return start_page.StartPageEntry("Tables", "Work with tasks and other records.", reverse("tables"), position=10)
