"""The page with the activity of a record, its parts for htmx, and the actions and files on it."""

from collections.abc import Callable, Mapping
from typing import IO, Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from system.errors import BadRequest, ServiceError
from system.http import uploads
from system.http.etags import IF_NONE_MATCH, read_tags
from tableapi.attached import attachments, comments, preview
from tableapi.http.responses import CONTENT_POLICY, content_response
from tableapi.read.context import Caller
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
# The browser keeps a file, but asks whether the caller can still read it.
CACHE_POLICY = "private, no-cache"


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
        response = self.render(template, {**values, "file_limit": settings.ATTACHMENT_LIMIT, **draft}, error)
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


@method_decorator(csrf_exempt, name="dispatch")  # otherwise, the check reads the body of people who are not signed in
class UploadAction(ActivityAction):
    """Receives one file from a script, or the files of a form."""

    body_limit = settings.ATTACHMENT_LIMIT + uploads.FORM_OVERHEAD_BYTES

    def post(self, request: HttpRequest, **path: str) -> HttpResponse:
        if "X-CSRFToken" not in request.headers:
            self.action = self._attach_files
            return self._receive_form(request, **path)
        request.POST = QueryDict()  # so that the check does not read the body
        return self._receive_stream(request, **path)

    _receive_form = method_decorator(csrf_protect)(ActivityAction.post)

    @method_decorator(csrf_protect)
    def _receive_stream(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        attachments.check_can_attach(self.caller, table, sys_id)  # before the file is received
        with uploads.receive_upload(request, settings.ATTACHMENT_LIMIT) as upload:
            row = attachments.create_attachment(self.caller, table, sys_id, upload)
            return JsonResponse(attachments.attachment_entry(row), status=201)

    def _attach_files(self, caller: Caller, table: str, sys_id: str) -> None:
        files = self.request.FILES.getlist("attachment-file")
        if not files:
            raise BadRequest("Choose a file.", code="mandatory")
        for file in files:
            uploads.check_not_empty(file.size or 0)
            uploads.check_size(file.size or 0, settings.ATTACHMENT_LIMIT)
        for file in files:
            upload = uploads.Upload(cast(IO[bytes], file.file), file.size or 0, file.name or "", "", {})
            attachments.create_attachment(caller, table, sys_id, upload)


class AttachmentFile(WorkspacePage):
    """The bytes of an attachment, as the API returns them, or with a number that page of a PDF file as an image.
    `X-Page-Count` is the number of pages that have an image."""

    def get(self, request: HttpRequest, number: int | None = None, **path: str) -> HttpResponseBase:
        attachment = attachments.find_attachment(self.caller, *path.values())
        tag = f'"{attachment.sha256}"' if number is None else f'"{attachment.sha256}-{number}"'
        if tag in read_tags(request, IF_NONE_MATCH):
            return HttpResponse(status=304)
        if number is None:
            response: HttpResponseBase = content_response(request, attachment)
        else:
            image, page_count = preview.render_page(attachment, number)
            headers = {"Content-Security-Policy": CONTENT_POLICY, "ETag": tag, "X-Page-Count": str(page_count)}
            response = HttpResponse(image, content_type="image/png", headers=headers)
        response["Cache-Control"] = CACHE_POLICY
        return response
