"""Edits the metadata of a document, as fields or as JSON."""

import json
import re
from collections.abc import Iterable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse

from collections_app import access
from collections_app.http.api.documents import content_etag, find_document, replace_metadata
from collections_app.metadata import validation
from collections_app.metadata.validation import InvalidMetadata
from collections_app.models import Collection, Document, Version
from collections_app.pages.views import CollectionPage
from system.errors import BadRequest, PreconditionFailed, combine_errors
from system.strict_json import InvalidJson, parse_json

STALE_MESSAGE = "The metadata was not saved because it was changed in the meantime. The current values are shown below."
VALUE_TYPES = {"text": "Text", "number": "Number", "boolean": "Yes or no", "list": "List of texts", "json": "JSON"}
NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
BOOLEANS = {"true": "true", "yes": "true", "false": "false", "no": "false"}
EMPTY_ROWS = 2


class MetadataPage(CollectionPage):
    """`/collections/{sys_id}/documents/{document}/metadata/`"""

    http_method_names = ["get", "head", "post", "options"]

    def get(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        version = opened_document.displayed_version()
        form_values = {"text": metadata_json(opened_document), "rows": to_rows(version.metadata)}
        return self._show(collection, opened_document, {**form_values, "tag": content_etag(version)})

    def post(self, request: HttpRequest, sys_id: str, document: str) -> HttpResponse:
        collection, opened_document = self._open(sys_id, document)
        is_json = "metadata" in request.POST
        form_values: dict[str, Any] = {"tag": request.POST.get("tag", ""), "is_json": is_json}
        form_values["text"] = request.POST.get("metadata", "") if is_json else metadata_json(opened_document)
        stored_metadata = opened_document.displayed_version().metadata
        form_values["rows"] = to_rows(stored_metadata) if is_json else submitted_rows(request.POST)

        def check(version: Version) -> None:
            if not form_values["tag"]:
                raise BadRequest("The form is incomplete. Reload the page and try again.")
            if content_etag(version) != form_values["tag"]:
                raise PreconditionFailed

        try:
            text = (form_values["text"].strip() or "{}") if is_json else rows_json(form_values["rows"])
            replace_metadata(opened_document, validation.parse_metadata(text), check)
        except PreconditionFailed as error:
            form_values["stored"] = metadata_json(find_document(collection, document))
            return self._show(collection, opened_document, {**form_values, "errors": [STALE_MESSAGE]}, error.status)
        except BadRequest as error:
            errors = [problem.message for problem in (error, *error.other_errors)]
            return self._show(collection, opened_document, {**form_values, "errors": errors}, error.status)
        messages.success(request, f"Metadata of “{opened_document.page_title()}” saved.")
        return redirect(self._list_url(collection))

    def _open(self, sys_id: str, document: str) -> tuple[Collection, Document]:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        return collection, find_document(collection, document)

    def _list_url(self, collection: Collection) -> str:
        """Returns the URL of the document list. Its filter is in the query string of this page."""
        url, query = reverse("documents-page", args=[collection.pk]), self.request.GET.urlencode()
        return f"{url}?{query}" if query else url

    def _show(
        self, collection: Collection, opened_document: Document, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        context["rows"] = [*context["rows"], *[{"name": "", "type": "text", "value": ""}] * EMPTY_ROWS]
        context |= {"collection": collection, "title": opened_document.page_title()}
        context |= {"back_url": self._list_url(collection), "value_types": VALUE_TYPES.items()}
        return render(self.request, "collections/metadata.html", context, status=status)


def metadata_json(document: Document) -> str:
    return json.dumps(document.displayed_version().metadata, indent=2, ensure_ascii=False)


def to_rows(metadata: dict[str, Any]) -> list[dict[str, str]]:
    """Returns a row for each field, from which `rows_json` restores the same value.

    >>> [(row["type"], row["value"]) for row in to_rows({"a": "x", "b": True, "c": 1.5, "d": ["x", "y"], "e": ["x,y"]})]
    [('text', 'x'), ('boolean', 'yes'), ('number', '1.5'), ('list', 'x, y'), ('json', '["x,y"]')]
    """
    return [{"name": name, **_typed_text(value)} for name, value in metadata.items()]


def _typed_text(value: Any) -> dict[str, str]:
    # A text field of a page drops line breaks.
    if isinstance(value, str) and not re.search(r"[\r\n]", value):
        return {"type": "text", "value": value}
    if isinstance(value, bool):
        return {"type": "boolean", "value": "yes" if value else "no"}
    if isinstance(value, list) and value and all(isinstance(item, str) and _is_list_item(item) for item in value):
        return {"type": "list", "value": ", ".join(value)}
    value_type = "number" if isinstance(value, int | float) else "json"
    return {"type": value_type, "value": json.dumps(value, ensure_ascii=False)}


def _is_list_item(text: str) -> bool:
    return bool(text) and text == text.strip() and not re.search(r"[,\r\n]", text)


def submitted_rows(form: QueryDict) -> list[dict[str, str]]:
    """Returns the rows that have a name or a value."""
    columns = (form.getlist(f"field_{column}") for column in ("name", "type", "value"))
    rows = [dict(zip(("name", "type", "value"), row, strict=True)) for row in zip(*columns, strict=False)]
    return [row for row in rows if row["name"] or row["value"]]


def rows_json(rows: Iterable[dict[str, str]]) -> str:
    """Returns the metadata as JSON; raises one error for all values that do not have their type.

    >>> rows_json([{"name": "tags", "type": "list", "value": "a, b"}, {"name": "n", "type": "number", "value": " 2"}])
    '{"tags": ["a", "b"], "n": 2}'
    """
    members, errors = [], []
    for row in rows:
        try:
            members.append(f"{json.dumps(row['name'])}: {_literal(row['type'], row['value'])}")
        except InvalidMetadata as error:
            errors.append(InvalidMetadata(f"{row['name'][:80]}: {error.message}", field="metadata"))
    if errors:
        raise combine_errors(errors)
    return f"{{{', '.join(members)}}}"


def _literal(value_type: str, value: str) -> str:
    stripped_value = value.strip()
    if value_type == "number":
        if not NUMBER.fullmatch(stripped_value):
            raise InvalidMetadata("a number is expected, such as 2 or 1.5.")
        return stripped_value
    if value_type == "boolean":
        if stripped_value.lower() not in BOOLEANS:
            raise InvalidMetadata("yes or no is expected.")
        return BOOLEANS[stripped_value.lower()]
    if value_type == "list":
        return json.dumps([item.strip() for item in value.split(",") if item.strip()], ensure_ascii=False)
    if value_type == "json":
        try:
            parse_json(value.encode("utf-8", "surrogatepass"))
        except InvalidJson as error:
            raise InvalidMetadata(error.message) from None
        return stripped_value
    return json.dumps(value, ensure_ascii=False)
