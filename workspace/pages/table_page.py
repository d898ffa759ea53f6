"""The base class of pages of one table that read or change something with the current access rules."""

from collections.abc import Callable

from django.http import HttpResponse

from tableapi.catalogue.definitions import Table
from tableapi.database import catalogue_loader
from tableapi.read.context import ReadContext
from workspace.pages.base import WorkspacePage


class TablePage(WorkspacePage):
    """Call the handlers with `respond`. A handler may be called again, so it writes last."""

    read_context: ReadContext
    table: Table

    def respond(self, table: str, handler: Callable[[], HttpResponse]) -> HttpResponse:
        # Some handlers run no statement of the pipeline, which would check that the catalogue is current.
        catalogue_loader.reload_if_changed()

        def handle(context: ReadContext, opened: Table) -> HttpResponse:
            self.read_context, self.table = context, opened
            return handler()

        return self.read(table, handle)
