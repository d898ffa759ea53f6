"""The page with the activity of a record, its parts for htmx, and the actions on it."""

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from system.errors import ServiceError
from tableapi.attached import comments
from workspace.pages.activity_stream import read_activity
from workspace.pages.base import WorkspacePage

PANEL_PARTS = ("stream", "files", "following")
PAGE: tuple[str, tuple[str, ...]] = ("activity", (*PANEL_PARTS, "title"))
# The template for the element that a request of htmx replaces, and what it shows. Other requests get the page.
FRAGMENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "activity": ("activity_panel", PANEL_PARTS),
    "activity-stream": ("activity_stream", ("stream",)),
    "activity-older": ("activity_entries", ("stream",)),
    "activity-files": ("activity_files", ("files",)),
    "activity-following": ("activity_following", ("following",)),
}


class ActivityPage(WorkspacePage):
    """`/tables/{table}/{sys_id}/activity/`."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        return self.show(table, sys_id, request.GET.dict())

    def show(
        self, table: str, sys_id: str, query: Mapping[str, str], error: ServiceError | None = None, **draft: Any
    ) -> HttpResponse:
        """Show the page or the requested part of it; after a failed action all of it, with the error."""
        template, parts = PAGE
        if "HX-Request" in self.request.headers:
            target = self.request.headers.get("HX-Target", "") if error is None else ""
            template, parts = FRAGMENTS.get(target, FRAGMENTS["activity"])
        values = read_activity(self.caller, table, sys_id, parts, query)
        values |= {"error": error, "file_limit": settings.ATTACHMENT_LIMIT, **draft}
        response = render(self.request, f"workspace/{template}.html", values, status=error.status if error else 200)
        if error:
            response["HX-Retarget"] = "#activity"
        return response


class ActivityAction(ActivityPage):
    """A change by a function of the API, after which the activity is shown. With `takes_text`, the function gets the
    text of a comment as the body."""

    http_method_names = ["post", "options"]
    action: Callable[..., object] = staticmethod(comments.create_comment)
    takes_text = False

    def post(self, request: HttpRequest, **path: str) -> HttpResponse:
        # Browsers send line ends as CR LF.
        text = request.POST.get("comment-text", "").replace("\r\n", "\n")
        table, sys_id = path["table"], path["sys_id"]
        try:
            self.action(self.caller, *path.values(), *([{"text": text}] if self.takes_text else []))
        except ServiceError as error:
            draft = {"draft": text, "draft_of": path.get("entry")} if self.takes_text else {}
            return self.show(table, sys_id, {}, error, **draft)
        if "HX-Request" in request.headers:
            return self.show(table, sys_id, {})
        return redirect(f"{reverse('record-activity', args=[table, sys_id])}#activity")
