"""The pages that create, show, change and delete a record, and its related lists."""

from collections.abc import Callable
from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from system.errors import ServiceError
from tableapi.changes.logged_values import table_key
from tableapi.database import catalogue_loader
from tableapi.query.parameters import OutputOptions
from tableapi.write import create, delete, update
from tableapi.write.write_request import WriteInput, write
from workspace.forms.record_form import new_form, record_form
from workspace.forms.related import related_lists
from workspace.forms.submission import Submission, read_change, read_creation, read_stored
from workspace.lists.siblings import siblings
from workspace.models import RecentRecord
from workspace.pages.base import WorkspacePage


class FormPage(WorkspacePage):
    """A page whose POST saves or deletes a record. If that is refused, a person sees the page again, with the error."""

    save: Callable[[str, str, Submission], HttpResponse]
    show: Callable[..., HttpResponse]

    def get(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        return self.show(table, sys_id, Submission({}))

    def post(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        sent = Submission.of(request.POST)
        try:
            return self.save(table, sys_id, sent)
        except ServiceError as error:
            if error.status == 404 or not request.accepts("text/html"):
                raise
            return self.show(table, sys_id, sent, error)


class RecordPage(FormPage):
    """`/tables/{table}/{sys_id}/`. A POST sends the controls of the columns to change."""

    def get(self, request: HttpRequest, table: str, sys_id: str = "") -> HttpResponse:
        response = super().get(request, table, sys_id)
        RecentRecord.add_visit(self.user().pk, table_key(self.open_table(table)[1]), sys_id)
        return response

    def save(self, table: str, sys_id: str, sent: Submission) -> HttpResponse:
        change = self.read(table, read_change, sys_id, sent)
        if not change.body:
            messages.success(self.request, "Nothing was changed.")
        else:
            result = write(self.caller, table, change, partial(update.update, sys_id=sys_id, replaces=False))
            if result.record is None:
                messages.success(self.request, "Saved. You are not allowed to read the changed record.")
                return redirect("table-list", table)
            messages.success(self.request, "Saved.")
        return redirect(self.request.get_full_path())

    def show(self, table: str, sys_id: str, sent: Submission, error: ServiceError | None = None) -> HttpResponse:
        form = self.read(table, record_form, sys_id, sent, error)
        list_text = self.request.GET.get("list", "")
        links = self.read(table, siblings, sys_id, list_text) if list_text else None
        return self.render("record", {"form": form, "siblings": links, "list_text": list_text}, error)


class NewRecordPage(FormPage):
    """`/tables/{table}/new/`. Parameters that name a column fill its control; `_duplicate` copies a record."""

    def save(self, table: str, sys_id: str, sent: Submission) -> HttpResponse:
        """Create the record and go to it, or stay if the caller cannot read it or wants to create another one."""
        result = write(self.caller, table, self.read(table, read_creation, sent), create.create)
        url = reverse("record-page", args=[table, result.sys_id])
        if self.open_table(table)[1].deferred_create:
            message = "The record will be created in a moment."
        elif result.record is None:
            message = "The record was created. You are not allowed to read it."
        elif self.request.POST.get("_save") == "new":
            title = self.read(table, read_stored, result.sys_id).title
            message = format_html('Created <a href="{}">{}</a>.', url, title)
        else:
            messages.success(self.request, "Created.")
            return redirect(url)
        messages.success(self.request, message)
        return redirect(self.request.get_full_path())

    def show(self, table: str, sys_id: str, sent: Submission, error: ServiceError | None = None) -> HttpResponse:
        if error is not None:
            return self.render("record", {"form": self.read(table, new_form, sent, error)}, error)
        catalogue_loader.reload_if_changed()  # an empty form needs no statement that would report newer rules
        query = self.request.GET
        form = self.read(table, new_form, Submission.of(query), source=query.get("_duplicate", ""))
        return self.render("record", {"form": form})


class DeletePage(FormPage):
    """`/tables/{table}/{sys_id}/delete/`: asks, then deletes the record."""

    def save(self, table: str, sys_id: str, sent: Submission) -> HttpResponse:
        write(self.caller, table, WriteInput({}, OutputOptions()), partial(delete.delete, sys_id=sys_id))
        messages.success(self.request, "The record was deleted.")
        links = self.read(table, siblings, sys_id, self.request.GET.get("list", ""))
        return redirect(links.list_url or reverse("table-list", args=[table]))

    def show(self, table: str, sys_id: str, sent: Submission, error: ServiceError | None = None) -> HttpResponse:
        title = self.read(table, read_stored, sys_id).title
        values = {"table": self.open_table(table)[1], "sys_id": sys_id, "title": title}
        return self.render("record_delete", values, error)


class RelatedView(WorkspacePage):
    """`/tables/{table}/{sys_id}/related/`: the related lists, as a fragment for htmx or as a page."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        title = self.read(table, read_stored, sys_id).title  # raises 404
        values = {"lists": self.read(table, related_lists, sys_id), "title": title, "table": table, "sys_id": sys_id}
        return self.render("related" if "HX-Request" in request.headers else "related_page", values)
