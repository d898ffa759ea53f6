"""The base classes of the pages: they require a signed-in user and open tables with their rights."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.contrib.auth.mixins import LoginRequiredMixin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views import View

from accounts.models import User
from system.errors import ServiceError
from system.http.error_responses import own_origin
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.database import catalogue_loader
from tableapi.http.responses import API_PATH
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller, ReadContext

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class WorkspacePage(LoginRequiredMixin, View):
    """A page, or a fragment that a script requests."""

    caller: Caller

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        if isinstance(request.user, User):
            # Escaped for use inside a JSON string.
            self.caller = Caller.of(request.user, json.dumps(own_origin(request) + API_PATH)[1:-1])

    def user(self) -> User:
        assert isinstance(self.request.user, User)
        return self.request.user

    def handle_no_permission(self) -> HttpResponseBase:  # type: ignore[override]  # wider type
        if "HX-Request" not in self.request.headers:
            return super().handle_no_permission()
        # The session has ended. Reload the page, which then redirects to the sign-in page.
        return HttpResponse(headers={"HX-Refresh": "true"})

    def context(self) -> ReadContext:
        """The caller's view of the cached catalogue. Statements check whether it is current."""
        return self.caller.context(catalogue_loader.cached_catalogue())

    def read(
        self, name: str, function: Callable[Concatenate[ReadContext, Table, Arguments], Result],
        *args: Arguments.args, **kwargs: Arguments.kwargs,
    ) -> Result:  # fmt: skip
        """Call the function with the caller's view of the current catalogue and the table, or raise its 404."""

        @on_current_catalogue
        def call(catalogue: Catalogue) -> Result:
            context = self.caller.context(catalogue)
            return function(context, context.view.open_table(name), *args, **kwargs)

        return call()

    def open_table(self, name: str) -> tuple[ReadContext, Table]:
        """Open a table, or raise the 404 of the Table API. A table created by another process is found too."""
        return self.read(name, lambda context, table: (context, table))

    def readable_tables(self) -> list[Table]:
        """The tables in which the caller can read records, by label; those of the product itself come last."""
        view = self.context().view
        tables = filter(view.can_read, view.catalogue.tables.values())
        return sorted(tables, key=lambda table: (table.is_system, table.label.casefold()))

    def render(self, template: str, values: Mapping[str, Any], error: ServiceError | None = None) -> HttpResponse:
        """Render a template of the workspace, after a refused action with its error and status."""
        status = error.status if error else 200
        return render(self.request, f"workspace/{template}.html", {**values, "error": error}, status=status)


class TablePage(WorkspacePage):
    """A page of one table. Its handlers run after `read_context` and `table` are set. They may be called again, so they
    write last."""

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
