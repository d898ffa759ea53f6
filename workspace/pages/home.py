"""The home page: the tables that the caller can read, their work, saved lists, recent records and notifications."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from workspace.pages.base import WorkspacePage


class HomePage(WorkspacePage):
    """`/tables/`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        view = self.context().view
        tables = [table for table in view.catalogue.tables.values() if view.can_read(table)]
        tables.sort(key=lambda table: (table.is_system, table.label.casefold()))
        return render(request, "workspace/home.html", {"tables": tables})
