"""The page of a record: its form, related lists, and its deletion."""

from functools import partial

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from system.errors import ServiceError
from tableapi.changes.logged_values import table_key
from tableapi.query.parameters import OutputOptions
from tableapi.write import delete, update
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteInput
from workspace.forms.record_form import RecordForm, record_form
from workspace.forms.record_values import read_title
from workspace.forms.related import related_lists
from workspace.forms.submission import Submission, read_change
from workspace.lists.siblings import Siblings, siblings
from workspace.models import RecentRecord
from workspace.pages.base import WorkspacePage

LIST_NAME = "list"


def is_for_program(request: HttpRequest, error: ServiceError) -> bool:
    """Whether to raise an error of a form instead of showing it there."""
    return error.status == 404 or not request.accepts("text/html")


class RecordPage(WorkspacePage):
    """`/tables/{table}/{sys_id}/`. A POST sends the controls of the columns to change."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        form = self.read(table, record_form, sys_id)
        RecentRecord.objects.record_visit(self.user().pk, table_key(form.table), sys_id)
        return self.show(form)

    def post(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        sent = Submission.of(request.POST)
        try:
            change = self.read(table, read_change, sys_id, sent)
            if change.body:
                # Nobody may change the record between the comparison and the write.
                is_current = None if sent.version is None else lambda version: bool(version == change.version)
                values = WriteInput(change.body, OutputOptions(), is_current=is_current, replaces_json=True)
                write(self.caller, table, values, partial(update.update, sys_id=sys_id, replaces=False))
        except ServiceError as error:
            if is_for_program(request, error):
                raise
            return self.show(self.read(table, record_form, sys_id, sent, error), error.status)
        messages.success(request, "Saved." if change.body else "Nothing was changed.")
        return redirect(request.get_full_path())

    def show(self, form: RecordForm, status: int = 200) -> HttpResponse:
        list_text = self.request.GET.get(LIST_NAME, "")
        links = self.read(form.table.name, siblings, form.sys_id, list_text) if list_text else Siblings()
        values = {"form": form, "siblings": links, "list_text": list_text}
        return render(self.request, "workspace/record.html", values, status=status)


class DeletePage(WorkspacePage):
    """`/tables/{table}/{sys_id}/delete/`: asks, then deletes the record."""

    def get(self, request: HttpRequest, table: str, sys_id: str, error: ServiceError | None = None) -> HttpResponse:
        values = {"form": self.read(table, record_form, sys_id), "error": error}
        return render(request, "workspace/record_delete.html", values, status=error.status if error else 200)

    def post(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        try:
            write(self.caller, table, WriteInput({}, OutputOptions()), partial(delete.delete, sys_id=sys_id))
        except ServiceError as error:
            if is_for_program(request, error):
                raise
            return self.get(request, table, sys_id, error)
        messages.success(request, "The record was deleted.")
        links = self.read(table, siblings, sys_id, request.GET.get(LIST_NAME, ""))
        return redirect(links.list_url or reverse("table-list", args=[table]))


class RelatedView(WorkspacePage):
    """`/tables/{table}/{sys_id}/related/`: the related lists, as a fragment for htmx or as a page."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        title = self.read(table, read_title, sys_id)  # raises 404
        lists = self.read(table, related_lists, sys_id)
        is_fragment = "HX-Request" in request.headers
        values = {"lists": lists, "title": title, "back_url": reverse("record-page", args=[table, sys_id])}
        return render(request, f"workspace/related{'' if is_fragment else '_page'}.html", values)
