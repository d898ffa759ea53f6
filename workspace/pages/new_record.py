"""The page that creates a record."""

import json

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import format_html

from system.errors import ServiceError
from tableapi.catalogue.definitions import Table
from tableapi.database import catalogue_loader
from tableapi.write import create
from tableapi.write.table_write import write
from tableapi.write.write_request import WriteResult
from workspace.forms import new_record
from workspace.forms.record_form import RecordForm, record_url
from workspace.forms.submission import SAVE_NAME, Submission
from workspace.pages.base import WorkspacePage
from workspace.pages.record import is_for_program


class NewRecordPage(WorkspacePage):
    """`/tables/{table}/new/`. Parameters that name a column fill its control; `_duplicate` copies a record."""

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        catalogue_loader.reload_if_changed()  # an empty form needs no statement that would report newer rules
        return self.show(self.read(table, new_record.linked_form, request.GET.dict()))

    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        sent = Submission.of(request.POST)
        try:
            change = self.read(table, new_record.write_input, sent.texts)
            result = write(self.caller, table, change, create.create)
        except ServiceError as error:
            if is_for_program(request, error):
                raise
            return self.show(self.read(table, new_record.new_form, sent.texts, error), error.status)
        return self.leave(self.open_table(table)[1], result)

    def leave(self, table: Table, result: WriteResult) -> HttpResponse:
        """Go to the record, or stay if the caller cannot read it or wants to create another one."""
        request = self.request
        if table.deferred_create:
            messages.success(request, "The record will be created in a moment.")
        elif result.record is None:
            messages.success(request, "The record was created. You are not allowed to read it.")
        elif request.POST.get(SAVE_NAME) == "new":
            name = next(iter(json.loads(result.record.body).values()), None) or result.sys_id
            messages.success(
                request, format_html('Created <a href="{}">{}</a>.', record_url(table, result.sys_id), name)
            )
        else:
            messages.success(request, "Created.")
            return redirect(record_url(table, result.sys_id))
        return redirect(request.get_full_path())

    def show(self, form: RecordForm, status: int = 200) -> HttpResponse:
        return render(self.request, "workspace/record.html", {"form": form}, status=status)
