"""Attachments in the dialect: the attached files of the Table API, addressed by their own id."""

import json
from typing import Any

from django.conf import settings
from django.http import HttpResponse, HttpResponseBase
from rest_framework.request import Request

from system.errors import InvalidParameter
from system.http import django_request, uploads
from system.http.error_responses import own_origin, own_url
from tableapi.access.caller_view import record_not_found
from tableapi.attached import attachments
from tableapi.attached.attachments import attachment_entry
from tableapi.attached.records import open_record, root_key
from tableapi.catalogue.definitions import Catalogue, Table
from tableapi.changes.logged_values import table_of
from tableapi.http.entry_views import receive_file
from tableapi.http.responses import content_response
from tableapi.models import Attachment
from tableapi.query.parameters import MAX_RECORDS, RawParameters, parse_text
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.pipeline import fetch_records, minimal_output

from . import parameters
from .records import current_names, open_table
from .views import ServiceNowView, caller_of, page_links, result_response

TABLE_NAME, TABLE_ID = "table_name", "table_sys_id"
# The columns of attachments that conditions can name.
CONDITION_COLUMNS = {TABLE_ID: "record_id", "sys_id": "pk", "file_name": "file_name", "content_type": "content_type"}
FILE_FIELDS = ("uploadFile", uploads.FILE_FIELD)
ROWS_PER_STATEMENT = 1_000


class AttachmentsView(ServiceNowView):
    def get(self, request: Request) -> HttpResponse:
        caller, raw = caller_of(request), request.query_params
        entries = read_entries(caller, raw, own_origin(django_request(request)))
        offset, limit = parameters.parse_page(raw)
        page = entries[offset : offset + limit]
        response = result_response(_json(page))
        response["X-Total-Count"] = str(len(entries))
        if not parameters.is_true(raw, "sysparm_suppress_pagination_header"):
            response["Link"] = page_links(request, offset, limit, len(entries))
        return response


class UploadView(ServiceNowView):
    """`POST …/attachment/file` with the bytes as body, and `…/upload` with a form."""

    body_limit = settings.ATTACHMENT_LIMIT + uploads.FORM_OVERHEAD_BYTES

    def post(self, request: Request) -> HttpResponse:
        caller, http_request = caller_of(request), django_request(request)
        target = {name: parse_text(request.query_params, name) for name in (TABLE_NAME, TABLE_ID)}
        if all(target.values()):
            check_target(caller, **target)  # before the file is received
        with receive_file(request, settings.ATTACHMENT_LIMIT, file_fields=FILE_FIELDS) as upload:
            target |= {name: values[-1] for name, values in upload.fields.items() if name in target and values[-1]}
            if not all(target.values()):
                raise InvalidParameter(f"{TABLE_NAME} and {TABLE_ID} are required.", field=TABLE_NAME)
            name = check_target(caller, **target)
            row = attachments.create_attachment(caller, name, target[TABLE_ID].lower(), upload)
        entry = _entry(row, current_names().table(name), own_origin(http_request))
        response = result_response(_json(entry), 201)
        response["Location"] = own_url(http_request, f"/api/now/attachment/{row.pk}")
        return response


class AttachmentView(ServiceNowView):
    def get(self, request: Request, entry: str) -> HttpResponse:
        row, table = find(caller_of(request), entry)
        table_name = current_names().table(table.name)
        return result_response(_json(_entry(row, table_name, own_origin(django_request(request)))))

    def delete(self, request: Request, entry: str) -> HttpResponse:
        row, table = find(caller_of(request), entry)
        attachments.delete_attachment(caller_of(request), table.name, row.record_id, entry)
        return HttpResponse(status=204)


class AttachmentContentView(ServiceNowView):
    def get(self, request: Request, entry: str) -> HttpResponseBase:
        return content_response(django_request(request), find(caller_of(request), entry)[0])


@on_current_catalogue
def find(catalogue: Catalogue, caller: Caller, sys_id: str) -> tuple[Attachment, Table]:
    """Return an attachment and its table. Raise NotFound if the caller cannot read the record."""
    row = Attachment.objects.filter(pk=sys_id, deletion_id=None).first()
    table = table_of(catalogue, row.table_key) if row else None
    if row is None or table is None or caller.context(catalogue).view.table(table.name) is None:
        raise record_not_found()
    open_record(catalogue, caller, table.name, row.record_id)
    return row, table


@on_current_catalogue
def check_target(catalogue: Catalogue, caller: Caller, *, table_name: str, table_sys_id: str) -> str:
    """Return the own name of the table. Raise an error if the caller cannot attach a file to the record."""
    name = open_table(caller.context(catalogue).view, current_names(), table_name).name
    attachments.check_can_attach(caller, name, table_sys_id.lower())
    return name


@on_current_catalogue
def read_entries(catalogue: Catalogue, caller: Caller, raw: RawParameters, origin: str) -> list[dict[str, str]]:
    """Return the first attachments that meet the conditions, of records that the caller can read."""
    context, names, conditions = caller.context(catalogue), current_names(), _conditions(raw)
    table_name = conditions.get(TABLE_NAME)
    named_table = names.find_table(context.view, table_name) if table_name else None
    tables = [named_table] if table_name else [table for table in catalogue.tables.values() if len(table.lineage) == 1]
    tables_by_key = {root_key(catalogue, table): table for table in tables if table and context.view.can_read(table)}
    rows = Attachment.objects.filter(deletion_id=None, table_key__in=tables_by_key).order_by("pk")
    for name, column in CONDITION_COLUMNS.items():
        if name in conditions:
            rows = rows.filter(**{column: conditions[name]})
    entries: list[dict[str, str]] = []
    last_id = ""
    # Hidden attachments do not count, so that they do not shorten the list.
    while len(entries) < MAX_RECORDS and (chunk := list(rows.filter(pk__gt=last_id)[:ROWS_PER_STATEMENT])):
        last_id = chunk[-1].pk
        for key, table in tables_by_key.items():
            if ids := {row.record_id for row in chunk if row.table_key == key}:
                readable = fetch_records(context, table, ids, minimal_output(context, table))
                chunk = [row for row in chunk if row.table_key != key or row.record_id in readable]
        shown_names = {key: table_name or names.table(table.name) for key, table in tables_by_key.items()}
        entries += [_entry(row, shown_names[row.table_key], origin) for row in chunk]
    return entries[:MAX_RECORDS]


def _conditions(raw: RawParameters) -> dict[str, str]:
    """The conditions of the query and of other parameters. Only equality can be used."""
    parts = parse_text(raw, "sysparm_query").split("^")
    conditions = dict(part.partition("=")[::2] for part in parts)
    return conditions | {name: parse_text(raw, name) for name in (TABLE_NAME, *CONDITION_COLUMNS) if name in raw}


def _entry(row: Attachment, table_name: str, origin: str) -> dict[str, str]:
    entry = attachment_entry(row)
    created_on, created_by = entry.pop("sys_created_at"), entry.pop("sys_created_by")
    return {
        **{name: str(value) for name, value in entry.items()},
        "size_bytes": str(row.size),
        "hash": row.sha256,
        TABLE_NAME: table_name,
        TABLE_ID: row.record_id,
        "sys_created_on": created_on,
        "sys_created_by": created_by or "",
        "download_link": f"{origin}/api/now/attachment/{row.pk}/file",
    }


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
