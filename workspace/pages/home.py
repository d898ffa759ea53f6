"""The home page: the caller's work, saved lists, recent records, notifications, and the tables that they can read."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tableapi.notifications import listing
from workspace.forms.parameters import parameters
from workspace.lists import saved_lists, short_lists
from workspace.pages.base import WorkspacePage

MAX_NOTIFICATIONS = 5


class HomePage(WorkspacePage):
    """`/tables/`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        view = self.context().view
        tables = sorted(filter(view.can_read, view.catalogue.tables.values()), key=lambda table: table.label.casefold())
        notifications = listing.read_notifications(self.caller, parameters(unread=1, sysparm_limit=MAX_NOTIFICATIONS))
        context = {
            "work_lists": short_lists.work_lists(self.caller),
            "recent_records": short_lists.recent_records(self.caller, self.user()),
            "saved_lists": saved_lists.saved_lists_for(self.context()),
            "notifications": notifications.entries,
            "designed_tables": [table for table in tables if not table.is_system],
            "product_tables": [table for table in tables if table.is_system],
        }
        return render(request, "workspace/home.html", context)
