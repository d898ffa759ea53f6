"""The endpoints for imports."""

import time
from dataclasses import replace

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from rest_framework.request import Request

from system.errors import UnsupportedMediaType
from system.http import django_request, uploads
from system.http.error_responses import own_url
from system.http.json_view import JsonView
from tableapi.imports import jobs, options, queue, steps
from tableapi.models import Import
from tableapi.query.parameters import parse_text

from .entry_views import FILE_NAME_PARAMETER
from .responses import entry_response
from .table_views import caller_of

IMPORT_PATH = "/rest/v1/import/"
REQUEST_BUDGET_S = 5.0
# Reading a larger file may take longer than a request.
MAX_BYTES_IN_REQUEST = 256 * 1024


class ImportsView(JsonView):
    http_method_names = ["post"]
    body_limit = settings.IMPORT_LIMIT + uploads.FORM_OVERHEAD_BYTES

    def post(self, request: Request, table: str) -> HttpResponse:
        http_request, caller = django_request(request), caller_of(request)
        import_options = options.parse_options(request.query_params)
        options.check(caller, table, import_options)  # before the file is received
        if http_request.content_type == "multipart/form-data":
            receive = uploads.receive_upload(http_request, settings.IMPORT_LIMIT)
        else:
            file_name = parse_text(request.query_params, FILE_NAME_PARAMETER)
            _format_of(http_request.content_type or "", "")
            receive = uploads.receive_file(http_request, file_name, settings.IMPORT_LIMIT)
        with receive as upload:
            if not import_options.encoding:
                import_options = replace(import_options, encoding=_declared_encoding(http_request))
            job = jobs.start(
                caller,
                table,
                pieces=upload.parts(),
                size=upload.size,
                file_name=upload.filename,
                format=_format_of(upload.declared_type, upload.filename),
                import_options=import_options,
            )
        return _processed_response(request, job)


class ImportView(JsonView):
    http_method_names = ["get", "head", "delete"]

    def get(self, request: Request, table: str, entry: str) -> HttpResponse:
        return entry_response(jobs.entry(jobs.find(caller_of(request), table, entry), request.query_params))

    def delete(self, request: Request, table: str, entry: str) -> HttpResponse:
        return entry_response(jobs.cancel_or_delete(caller_of(request), table, entry))


class ImportRunView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request, table: str, entry: str) -> HttpResponse:
        import_options = options.parse_options(request.query_params)
        job = jobs.run_again(caller_of(request), table, entry, import_options)
        return _processed_response(request, job)


class ImportUndoView(JsonView):
    http_method_names = ["post"]

    def post(self, request: Request, table: str, entry: str) -> HttpResponse:
        return _processed_response(request, jobs.undo(caller_of(request), table, entry))


def _format_of(declared_type: str, file_name: str) -> str:
    """By the content type; by the file name if the client sent none that tells it."""
    suffix = file_name.rpartition(".")[2].lower()
    format = options.FORMATS.get(declared_type.partition(";")[0].strip().lower()) or options.FORMATS_BY_SUFFIX.get(
        suffix
    )
    if format is None:
        message = "Send a CSV file, an XLSX workbook or JSON lines, with a content type such as text/csv."
        raise UnsupportedMediaType(message, field=uploads.FILE_FIELD)
    return format


def _declared_encoding(request: HttpRequest) -> str:
    charset = (request.content_params or {}).get("charset", "")
    return options.parse_encoding(charset) if charset else ""


def _processed_response(request: Request, job: Import) -> HttpResponse:
    """Process a small import now; leave others, and the rest, to the worker."""
    if job.size <= MAX_BYTES_IN_REQUEST and (token := queue.take(job)):
        steps.process(job.pk, token, deadline=time.monotonic() + REQUEST_BUDGET_S, in_request=True)
    state = jobs.entry(job, request.query_params)
    if jobs.is_active(job):
        queue.wake()
    response = entry_response(state, 202 if jobs.is_active(job) else 200)
    response["Location"] = own_url(django_request(request), f"{IMPORT_PATH}{job.table}/{job.pk}")
    return response
