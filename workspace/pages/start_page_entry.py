"""The workspace's links on the start page."""

from django.http import HttpRequest
from django.urls import reverse

from system.http import start_page


@start_page.register_entry
def tables_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    return start_page.StartPageEntry("Tables", "Work with tasks and other records.", reverse("tables"), position=10)


@start_page.register_entry
def design_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    if not request.user.is_superuser:
        return None
    text = "Create tables, and change their columns, views and rules."
    return start_page.StartPageEntry("Design tables", text, reverse("design"), position=80)
