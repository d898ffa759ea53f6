"""The base class of pages of one table that read or change something with the current access rules."""

from typing import Any

from django.http import HttpRequest, HttpResponseBase

from tableapi.catalogue.definitions import Table
from tableapi.database import catalogue_loader
from tableapi.read.context import ReadContext
from workspace.pages.base import WorkspacePage


class TablePage(WorkspacePage):
    """Its handlers run after `read_context` and `table` are set. They may be called again, so they write last."""

    read_context: ReadContext
    table: Table

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return self.handle_no_permission()
        # Some handlers run no statement of the pipeline, which would check that the catalogue is current.
        catalogue_loader.reload_if_changed()
        return self.read(kwargs["table"], self.handle, *args, **kwargs)

    def handle(self, context: ReadContext, opened: Table, /, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.read_context, self.table = context, opened
        return super().dispatch(self.request, *args, **kwargs)
