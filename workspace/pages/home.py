"""The home page: the caller's work, saved lists, recent records, notifications, and the tables that they can read."""

from django.http import HttpRequest, HttpResponse

from tableapi.notifications import listing
from workspace.forms.parameters import parameters
from workspace.lists import saved_lists, short_lists
from workspace.pages.base import WorkspacePage
from workspace.pages.notifications import describe

MAX_NOTIFICATIONS = 5


class HomePage(WorkspacePage):
    """`/tables/`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        raw = parameters(unread=1, sysparm_limit=MAX_NOTIFICATIONS)
        values = {
            "work_lists": short_lists.work_lists(self.caller),
            "recent_records": short_lists.recent_records(self.caller, self.user()),
            "saved_lists": saved_lists.saved_lists_for(self.context()),
            "notifications": describe(self.caller, listing.read_notifications(self.caller, raw).entries),
            "tables": self.readable_tables(),
        }
        return self.render("home", values)
