"""The home page: the caller's work, saved lists, recent records, notifications, and the tables that they can read."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from tableapi.notifications import listing
from workspace.forms.parameters import parameters
from workspace.lists import saved_lists, short_lists
from workspace.pages.base import WorkspacePage
from workspace.pages.notifications import describe

MAX_NOTIFICATIONS = 5


class HomePage(WorkspacePage):
    """`/tables/`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        context, raw = self.context(), parameters(unread=1, sysparm_limit=MAX_NOTIFICATIONS)
        tables = filter(context.view.can_read, context.view.catalogue.tables.values())
        values = {
            "work_lists": short_lists.work_lists(self.caller),
            "recent_records": short_lists.recent_records(self.caller, self.user()),
            "saved_lists": saved_lists.saved_lists_for(context),
            "notifications": describe(self.caller, listing.read_notifications(self.caller, raw).entries),
            "tables": sorted(tables, key=lambda table: (table.is_system, table.label.casefold())),
        }
        return render(request, "workspace/home.html", values)
