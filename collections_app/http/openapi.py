"""The eight endpoints in the OpenAPI document; the management beside them is described by its serializers."""

from __future__ import annotations

from typing import Any

from system import errors
from system.openapi import BODY_ERRORS, READ_ERRORS, SECURITY, WRITE_ERRORS, Errors, Object, error_responses

from .openapi_components import FILE, METADATA, PARAMETERS, SCHEMAS, TEXTS

TAG = "Document collections"
ANYWHERE = "Every parameter may stand in the query string, or in a JSON body."

LOAD_ERRORS: Errors = (*READ_ERRORS, *BODY_ERRORS, *WRITE_ERRORS, errors.Invalid)
DELETE_ERRORS: Errors = (*READ_ERRORS, errors.AccessDenied)

LOAD = ("metadata", "doc_id", "on_duplicate", "wait")
RELEVANT = ("collection_names*", "query*", "k", "metadata", "mode", "alpha")
BY_TAG = ("collection_name*", "tag_info", "limit", "offset")
SEARCH_MODE = {
    "X-Search-Mode": {
        "description": "`text` when only words counted, because the embedding provider did not answer.",
        "schema": {"const": "text"},
    }
}
PAGES = {
    "X-Total-Count": {"description": "How many there are in all.", "schema": {"type": "integer", "minimum": 0}},
    "X-Next-Offset": {
        "description": "The offset at which the list goes on; absent at its end.",
        "schema": {"type": "integer", "minimum": 1},
    },
}


def without_endpoints(endpoints: list[Any]) -> list[Any]:
    """PREPROCESSING_HOOKS: this module describes them."""
    return [endpoint for endpoint in endpoints if endpoint[0].strip("/") not in {path[1:] for path in PATHS}]


def with_endpoints(result: Object, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: adds them, the same for everybody."""
    result["paths"] = {**result["paths"], **PATHS}
    components = result.setdefault("components", {})
    components["schemas"] = {**components.get("schemas", {}), **SCHEMAS}
    return result


def operation(summary: str, about: str, possible: Errors, answers: Object, **more: Any) -> Object:
    return {
        "operationId": summary.lower().replace(" ", "_"),
        "summary": summary,
        "description": about,
        "tags": [TAG],
        "security": SECURITY,
        "responses": dict(sorted((error_responses(possible) | answers).items())),
        **more,
    }


def in_query(*names: str, **instead: Object) -> list[Object]:
    """Parameters; a * after a name says that it is needed. `instead` describes those that are others here."""
    found = []
    for name in names:
        schema = dict(instead.get(name.rstrip("*")) or PARAMETERS[name.rstrip("*")])
        about = schema.pop("description")
        needed = {"required": True} if name.endswith("*") else {}
        found.append({"name": name.rstrip("*"), "in": "query", "schema": schema, "description": about, **needed})
    return found


def beside_a_body(*names: str, **instead: Object) -> list[Object]:
    """What may stand in the query string of a POST as well. What is needed stands in the body alone, so that a client
    made from this asks for it; and no defaults: a client that sends them would contradict its own body.

    >>> [each["name"] for each in beside_a_body("query*", "k")]
    ['k']
    """
    found = in_query(*[name for name in names if not name.endswith("*")], **instead)
    return [{**each, "schema": {key: it for key, it in each["schema"].items() if key != "default"}} for each in found]


def in_body(*names: str, **instead: Object) -> Object:
    return {"required": True, "content": {"application/json": {"schema": object_of(*names, **instead)}}}


def object_of(*names: str, **instead: Object) -> Object:
    """A JSON object of parameters or a form; `instead` describes those that are others here."""
    properties = {name.rstrip("*"): instead.get(name.rstrip("*")) or PARAMETERS[name.rstrip("*")] for name in names}
    needed = [name.rstrip("*") for name in names if name.endswith("*")]
    whole: Object = {"type": "object", "properties": properties, "additionalProperties": False}
    return whole | ({"required": needed} if needed else {})


def answer(schema: Object, about: str, headers: Object | None = None) -> Object:
    found: Object = {"description": about, "content": {"application/json": {"schema": schema}}}
    return found | ({"headers": headers} if headers else {})


def of(name: str) -> Object:
    return {"$ref": f"#/components/schemas/{name}"}


def list_of(name: str) -> Object:
    return {"type": "array", "items": of(name)}


LOADED: Object = {
    "200": answer(of("Loaded"), "It was there already."),
    "201": answer(of("Loaded"), "It can be found; or it is `empty`: no text was found in it."),
    "202": answer(of("Loaded"), "It is kept and a worker goes on; `status_url` tells how far it is."),
}
MADE = "A collection that is missing is made, if the caller may."
FOUND: Object = {"200": answer(list_of("Passage"), "The passages, best first.", SEARCH_MODE)}
WHOLE: Object = {"200": answer(list_of("Content"), "The documents.", PAGES)}


def deletion(summary: str, schema: str, *names: str) -> Object:
    found = {"200": answer(of(schema), "It is deleted.")}
    return operation(summary, ANYWHERE, DELETE_ERRORS, found, parameters=in_query(*names))


def listing(summary: str, schema: Object, *names: str) -> Object:
    return operation(summary, "", READ_ERRORS, {"200": answer(schema, "The list.")}, parameters=in_query(*names))


METADATA_TEXT: Object = {
    "type": "string",
    "description": "The text of a JSON object.",
    "contentMediaType": "application/json",
    "contentSchema": METADATA,
}
LOAD_IN_QUERY = beside_a_body(*LOAD, metadata=METADATA_TEXT)
FORM = object_of("file*", *LOAD, file=FILE, metadata=METADATA_TEXT)

PATHS: Object = {
    "/load_document_to_collection": {
        "post": operation(
            "Load a document",
            f"A file, made searchable. {MADE} Every parameter may stand in the query string, or in the form.",
            LOAD_ERRORS,
            LOADED,
            parameters=[*in_query("collection_name*"), *LOAD_IN_QUERY],
            requestBody={"required": True, "content": {"multipart/form-data": {"schema": FORM}}},
        )
    },
    "/load_text_to_collection": {
        "post": operation(
            "Load a text",
            f"A text, made searchable. {MADE} {ANYWHERE}",
            LOAD_ERRORS,
            LOADED,
            parameters=[*in_query("collection_name*"), *LOAD_IN_QUERY],
            requestBody=in_body("text*", *LOAD, metadata=METADATA),
        )
    },
    "/get_relevant_documents": {
        "get": operation("Search", ANYWHERE, READ_ERRORS, FOUND, parameters=in_query(*RELEVANT)),
        "post": operation(
            "Search by a body",
            ANYWHERE,
            (*READ_ERRORS, *BODY_ERRORS),
            FOUND,
            parameters=beside_a_body(*RELEVANT),
            requestBody=in_body(*RELEVANT),
        ),
    },
    "/get_content_by_tag": {
        "get": operation("Read whole documents", ANYWHERE, READ_ERRORS, WHOLE, parameters=in_query(*BY_TAG)),
        "post": operation(
            "Read whole documents by a body",
            ANYWHERE,
            (*READ_ERRORS, *BODY_ERRORS),
            WHOLE,
            parameters=beside_a_body(*BY_TAG),
            requestBody=in_body(*BY_TAG),
        ),
    },
    "/get_list_of_documents_names": {"get": listing("List the documents of a collection", TEXTS, "collection_name*")},
    "/get_list_of_collection": {"get": listing("List the collections", list_of("Collection"))},
    "/delete_document_from_collection": {
        "delete": deletion("Delete a document", "DeletedDocument", "collection_name*", "id_value*")
    },
    "/delete_collection": {"delete": deletion("Delete a collection", "DeletedCollection", "collection_name*")},
}
