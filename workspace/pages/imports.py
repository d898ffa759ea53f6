"""The pages of imports: a file is checked first, then imported, and a finished import can be undone."""

import json
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.datastructures import MultiValueDict
from django.utils.decorators import method_decorator
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from system.errors import BadRequest, NotFound, ServiceError
from system.http import uploads
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Table
from tableapi.imports import jobs, options
from tableapi.imports.options import ImportOptions
from tableapi.query.expressions import NEVER
from tableapi.read.context import ReadContext
from tableapi.read.entry_pages import format_time
from workspace.forms.display import column_label
from workspace.pages.base import WorkspacePage

MAX_SHOWN_ERRORS = 100
STATE_LABELS = {
    "reading": "Reading the file",
    "writing": "Importing",
    "done": "Imported",
    "failed": "Not imported",
    "cancelled": "Canceled",
    "undoing": "Undoing the import",
    "undone": "Import undone",
}
CHECK_LABELS = {
    "writing": "Checking the records",
    "done": "Checked: nothing has been imported yet",
    "failed": "The file cannot be imported like this",
}


@method_decorator(csrf_exempt, name="dispatch")  # otherwise, the check reads the body of people who are not signed in
class NewImportPage(WorkspacePage):
    """`/tables/{table}/import/`: chooses a file and how to import it. The file is checked, without writing records."""

    body_limit = settings.IMPORT_LIMIT + uploads.FORM_OVERHEAD_BYTES

    def get(self, request: HttpRequest, table: str) -> HttpResponse:
        return self._show(table)

    @method_decorator(csrf_protect)
    def post(self, request: HttpRequest, table: str) -> HttpResponse:
        try:
            import_options = _options(request.POST, dry_run="1")
            options.check(self.caller, table, import_options)
            file = request.FILES.get(uploads.FILE_FIELD)
            if file is None:
                raise BadRequest("Choose a file.", code="mandatory", field=uploads.FILE_FIELD)
            uploads.check_not_empty(file.size or 0)
            uploads.check_size(file.size or 0, settings.IMPORT_LIMIT)
            job = jobs.start(self.caller, table, import_options, file.chunks(uploads.PART_BYTES), file.name or "", "")
        except NotFound:
            raise
        except ServiceError as error:
            return self._show(table, error)
        jobs.process_now(job)
        return redirect("import", table, job.pk)

    def _show(self, table: str, error: ServiceError | None = None) -> HttpResponse:
        context = self.read(table, _table_context) | {"values": self.request.POST}
        context["imports"] = [_described(jobs.entry(job)) for job in jobs.recent(self.caller, table)]
        context["limit"] = settings.IMPORT_LIMIT
        return self.render("import_new", context, error)


class ImportPage(WorkspacePage):
    """`/tables/{table}/import/{id}/`: progress, columns and errors. htmx requests the state while it changes."""

    def get(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        return self._show(table, sys_id)

    def post(self, request: HttpRequest, table: str, sys_id: str) -> HttpResponse:
        action = request.POST.get("action", "")
        try:
            if action == "undo":
                jobs.process_now(jobs.undo(self.caller, table, sys_id))
            elif action == "cancel":
                jobs.cancel_or_delete(self.caller, table, sys_id)
            else:
                self._run(table, sys_id, is_check=action != "import")
        except NotFound:
            raise
        except ServiceError as error:
            return self._show(table, sys_id, error)
        return redirect("import", table, sys_id)

    def _run(self, table: str, sys_id: str, *, is_check: bool) -> None:
        form = self.request.POST
        header = jobs.find(self.caller, table, sys_id).description.get("header", ())
        names = {f"column-{number}": name for number, name in enumerate(header) if name}
        chosen = {name: form[field] or None for field, name in names.items() if field in form}
        mapping = {"mapping": json.dumps(chosen)} if chosen else {}
        import_options = _options(form, dry_run="1" if is_check else "0", **mapping)
        jobs.process_now(jobs.run_again(self.caller, table, sys_id, import_options))

    def _show(self, table: str, sys_id: str, error: ServiceError | None = None) -> HttpResponse:
        job = jobs.find(self.caller, table, sys_id)
        entry = _described(jobs.entry(job, MAX_SHOWN_ERRORS))
        context = self.read(table, _table_context) | {"entry": entry}
        # A query names whole seconds, and the last record can be later than the second in which the import ended.
        context["end"] = job.finished_at and format_time(job.finished_at + timedelta(seconds=1))
        context["line_errors"] = [
            item | {"line": line["line"], "label": context["labels"].get(item.get("field"), item.get("field"))}
            for line in entry["line_errors"]
            for item in line["errors"]
        ]
        return self.render("import_state" if "HX-Request" in self.request.headers else "import", context, error)


def _options(form: QueryDict, **values: str) -> ImportOptions:
    sent: dict[str, Any] = form.dict() | values
    return options.parse_options(MultiValueDict({name: [value] for name, value in sent.items()}))


def _described(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry with what the page derives from its state."""
    labels = STATE_LABELS | CHECK_LABELS if entry["dry_run"] else STATE_LABELS
    is_active = entry["state"] in ("reading", "writing", "undoing")
    may_run_again = not is_active and entry["state"] != "undone" and not entry["can_be_undone"]
    return entry | {"label": labels[entry["state"]], "is_active": is_active, "may_run_again": may_run_again}


def _table_context(context: ReadContext, table: Table) -> dict[str, Any]:
    permissions = context.view.permissions
    columns = [column for column in table.columns.values() if permissions.can_see_column(table, column)]
    columns.sort(key=lambda column: column_label(column).casefold())
    return {
        "table": table,
        "is_admin": permissions.is_admin,
        "labels": {column.name: column_label(column) for column in columns},
        "keys": [
            (column.name, column_label(column))
            for column in columns
            if (column.is_unique or column.name == "sys_id") and context.view.column(table, column.name) is not None
        ],
        "can_delete": permissions.record_decision(DELETE, table) != NEVER,
        "can_create": permissions.record_decision(CREATE, table) != NEVER,
        "can_update": permissions.record_decision(WRITE, table) != NEVER and context.view.can_read(table),
    }
