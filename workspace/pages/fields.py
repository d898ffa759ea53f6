"""The columns that the condition builder offers."""

from typing import Any

from django.http import HttpRequest, JsonResponse

from tableapi.catalogue.definitions import Catalogue
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from workspace.lists import fields
from workspace.pages.base import WorkspacePage


class FieldsView(WorkspacePage):
    """`/tables/{table}/fields/?path=…`: the columns of the table or, with a path, of the records it refers to."""

    def get(self, request: HttpRequest, table: str) -> JsonResponse:
        path = request.GET.get("path", "")
        return JsonResponse(read_fields(self.caller, table, tuple(path.split(".")) if path else ()))


@on_current_catalogue
def read_fields(catalogue: Catalogue, caller: Caller, table: str, path: tuple[str, ...]) -> dict[str, Any]:
    view = caller.context(catalogue).view
    return fields.read_fields(view, view.open_table(table), path)
