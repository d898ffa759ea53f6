"""The endpoints for imports."""

from dataclasses import replace

from django.conf import settings
from django.http import HttpResponse
from rest_framework.request import Request

from system.http import django_request, uploads
from system.http.error_responses import own_url
from tableapi.imports import jobs, options, steps
from tableapi.models import Import
from tableapi.query.parameters import parse_number

from .entry_views import EntryView, entry_handler, receive_file
from .responses import entry_response
from .table_views import caller_of

IMPORT_PATH = "/rest/v1/import/"


class ImportsView(EntryView):
    body_limit = settings.IMPORT_LIMIT + uploads.FORM_OVERHEAD_BYTES

    def post(self, request: Request, table: str) -> HttpResponse:
        http_request, caller = django_request(request), caller_of(request)
        import_options = options.parse_options(request.query_params)
        charset = (http_request.content_params or {}).get("charset", "")
        if charset and not import_options.encoding:
            import_options = replace(import_options, encoding=options.parse_encoding(charset))
        options.check(caller, table, import_options)  # before the file is received
        with receive_file(request, settings.IMPORT_LIMIT) as upload:
            job = jobs.start(caller, table, import_options, upload.parts(), upload.filename, upload.declared_type)
        return _processed_response(request, job)


class ImportView(EntryView):
    delete = entry_handler(jobs.cancel_or_delete)

    def get(self, request: Request, table: str, entry: str) -> HttpResponse:
        return _import_response(request, jobs.find(caller_of(request), table, entry))


class ImportRunView(EntryView):
    def post(self, request: Request, table: str, entry: str) -> HttpResponse:
        import_options = options.parse_options(request.query_params)
        return _processed_response(request, jobs.run_again(caller_of(request), table, entry, import_options))


class ImportUndoView(EntryView):
    def post(self, request: Request, table: str, entry: str) -> HttpResponse:
        return _processed_response(request, jobs.undo(caller_of(request), table, entry))


def _processed_response(request: Request, job: Import) -> HttpResponse:
    jobs.process_now(job)
    response = _import_response(request, job)
    response.status_code = 202 if job.is_active else 200
    response["Location"] = own_url(django_request(request), f"{IMPORT_PATH}{job.table}/{job.pk}")
    return response


def _import_response(request: Request, job: Import) -> HttpResponse:
    limit = parse_number(request.query_params, "sysparm_limit", jobs.DEFAULT_ERRORS, maximum=steps.MAX_STORED_ERRORS)
    return entry_response(jobs.entry(job, limit))
