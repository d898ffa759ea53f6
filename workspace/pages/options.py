"""The suggestions of reference pickers."""

from django.http import HttpRequest, JsonResponse

from system.errors import InvalidParameter
from tableapi.catalogue.definitions import Catalogue
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from workspace.forms import options
from workspace.pages.base import WorkspacePage

MAX_TEXT_LENGTH = 200


class OptionsView(WorkspacePage):
    """`/tables/{table}/options/?q=…`: up to 20 records by their display value, as JSON."""

    def get(self, request: HttpRequest, table: str) -> JsonResponse:
        text = request.GET.get("q", "").strip()
        if len(text) > MAX_TEXT_LENGTH or "\x00" in text:
            raise InvalidParameter(f"q can contain at most {MAX_TEXT_LENGTH} characters.", field="q")
        return JsonResponse({"options": find_options(self.caller, table, text)})


@on_current_catalogue
def find_options(catalogue: Catalogue, caller: Caller, table: str, text: str) -> list[dict[str, str]]:
    context = caller.context(catalogue)
    return options.find_options(context, context.view.open_table(table), text)
