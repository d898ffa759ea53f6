"""The designer: the list of tables, and one page for each table. Only for administrators."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect

from system.errors import AccessDenied, Conflict, NotFound
from tableapi.database import catalogue_loader
from workspace.designer import design_list
from workspace.designer.design_form import NEW_TABLE, DesignForm, find_table
from workspace.lists.query_description import filter_context
from workspace.pages.base import WorkspacePage
from workspace.pages.search import search_text


class DesignerPage(WorkspacePage):
    """A page for holders of the role `admin`."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated and not self.user().is_superuser:
            raise AccessDenied("Only administrators can design tables.")
        return super().dispatch(request, *args, **kwargs)


class DesignListPage(DesignerPage):
    """`/design/?q=…`."""

    def get(self, request: HttpRequest) -> HttpResponse:
        text = search_text(request) if "q" in request.GET else ""
        return self.render("designer/list", {"tables": design_list.find_tables(text), "text": text})


class TableDesignPage(DesignerPage):
    """`/design/{table}/`, `/design/new-table/`, and `/design/any-table/` for the rules that belong to no table."""

    def get(self, request: HttpRequest, table: str | None = None) -> HttpResponse:
        catalogue_loader.reload_if_changed()  # the labels of view paths come from it
        return self.show(DesignForm(find_table(table) if table else None))

    def post(self, request: HttpRequest, table: str | None = None) -> HttpResponse:
        form = DesignForm(find_table(table) if table else None, request.POST)
        if request.POST.get("step"):  # adds an empty row where scripts are switched off
            form.add_row(request.POST["step"])
            return self.show(form)
        if not form.save():
            return self.show(form)
        messages.success(request, "Saved.")
        return redirect(form.path)

    def show(self, form: DesignForm) -> HttpResponse:
        form.describe_rules(self.context())
        preview = form.preview() if form.table else None
        return self.render("designer/page", {"form": form, "table": form.table, "preview": preview})


class PreviewView(DesignerPage):
    """`/design/{table}/preview/`: the preview of what was typed, as a fragment for the script of the page."""

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        form = DesignForm(find_table(table), request.POST)
        return self.render("designer/preview", {"preview": form.preview()})


class ConditionView(DesignerPage):
    """`/design/{table}/condition/?query=…`: the condition builder for a rule, as a fragment for the script."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        context, opened = self.open_table(table)
        query = request.GET.get("query", "")
        return self.render("designer/condition", {"query": query, **filter_context(context, opened, query)})


class TableDeletionPage(DesignerPage):
    """`/design/{table}/delete/`: says what is lost, then deletes the table."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        return self.show(self.find_stored(table))

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        found = self.find_stored(table)
        if reason := design_list.delete_table(found):
            return self.show(self.find_stored(table), Conflict(reason))
        messages.success(request, f"The table {found.label} was deleted.")
        return redirect("design")

    def find_stored(self, name: str) -> Any:
        if name == NEW_TABLE:
            raise NotFound("There is no such table.")
        return find_table(name)

    def show(self, table: Any, error: Conflict | None = None) -> HttpResponse:
        values = {"table": table, **design_list.deletion_of(table)}
        return self.render("designer/delete", values, error)
