"""The designer: the list of tables, and one page for each table. Only for administrators."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from system.errors import AccessDenied, NotFound
from workspace.designer.design_form import DesignForm, find_table, new_table
from workspace.pages.base import WorkspacePage

# Not a valid name of a table.
NEW_TABLE = "new-table"


class DesignerPage(WorkspacePage):
    """A page for holders of the role `admin`."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not self.user().is_superuser:
            raise AccessDenied("Only administrators can design tables.")
        return super().dispatch(request, *args, **kwargs)

    def design_form(self, table: str, **options: Any) -> DesignForm:
        found = new_table() if table == NEW_TABLE else find_table(table)
        if found is None:
            raise NotFound("There is no such table.")
        return DesignForm(found, **options)


class TableDesignPage(DesignerPage):
    """`/design/{table}/`, and `/design/new-table/`."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        return self.show(self.design_form(table))

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        form = self.design_form(table, data=request.POST)
        if not form.save():
            return self.show(form)
        messages.success(request, "Saved.")
        return redirect("design-table", form.table.name)

    def show(self, form: DesignForm) -> HttpResponse:
        return self.render("designer/page", {"form": form, "table": form.table, "is_new": form.is_new})
