"""Exports the design as a file, and plans and applies one."""

from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase

from system.errors import ServiceError
from system.http import uploads
from tableapi.design_files import apply, export
from tableapi.http.design_views import file_response
from tableapi.query.parameters import parse_text
from workspace.pages.base import WorkspacePage


class AdminPage(WorkspacePage):
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            export.require_admin(self.caller)
        return super().dispatch(request, *args, **kwargs)


class DesignExport(AdminPage):
    """`/design-files/export/`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        try:
            return file_response(export.export_design(self.caller))
        except ServiceError as error:
            return self.render("design_files", {}, error)


class DesignFilesPage(AdminPage):
    """`/design-files/`. A POST shows the plan of a file, or applies the plan that was shown."""

    def get(self, request: HttpRequest) -> HttpResponse:
        return self.render("design_files", {})

    def post(self, request: HttpRequest) -> HttpResponse:
        file = request.FILES.get(uploads.FILE_FIELD)
        # Browsers send line breaks of a text area as CR LF.
        data = file.read() if file else parse_text(request.POST, "text").replace("\r\n", "\n").encode()
        digest, prune = parse_text(request.POST, "digest"), "prune" in request.POST
        values = {"text": data.decode(errors="replace"), "prune": prune, "is_applied": bool(digest)}
        try:
            plan = apply.apply_design(self.caller, data, prune=prune, is_dry_run=not digest, digest=digest)
        except ServiceError as error:
            return self.render("design_files", values, error)
        return self.render("design_files", {**values, "plan": plan})
