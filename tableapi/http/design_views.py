"""The endpoints for design files: export, plan and apply."""

from collections.abc import Mapping

from django.http import HttpResponse
from rest_framework.request import Request

from system.errors import UnsupportedMediaType
from system.http import django_request
from tableapi.design_files import apply, export
from tableapi.query.parameters import parse_switch

from .entry_views import EntryView
from .responses import data_response, entry_json
from .table_views import caller_of

PRUNE_PARAMETER = "prune"
FILE_NAME = "design.yaml"
YAML = "application/yaml"
YAML_TYPES = {YAML, "application/x-yaml", "text/yaml", "text/x-yaml", "application/octet-stream"}


def file_response(text: str) -> HttpResponse:
    headers: Mapping[str, str] = {"Content-Disposition": f'attachment; filename="{FILE_NAME}"'}
    return HttpResponse(text, content_type="text/yaml; charset=utf-8", headers=headers)


class DesignView(EntryView):
    def get(self, request: Request) -> HttpResponse:
        return file_response(export.export_design(caller_of(request)))


class DesignPlanView(EntryView):
    is_dry_run = True

    def post(self, request: Request) -> HttpResponse:
        caller, http_request = caller_of(request), django_request(request)
        export.require_admin(caller)
        if http_request.content_type not in YAML_TYPES:
            raise UnsupportedMediaType(f"The Content-Type header must be {YAML}.")
        prune = parse_switch(request.query_params, PRUNE_PARAMETER)
        plan = apply.apply_design(caller, http_request.body, prune=prune, is_dry_run=self.is_dry_run)
        return data_response([entry_json(step.as_entry()) for step in plan.shown_steps])


class DesignApplyView(DesignPlanView):
    is_dry_run = False
