"""Parameters and answers of the eight endpoints as the OpenAPI document has them, each said once."""

from __future__ import annotations

from typing import Any

from collections_app.http.parameters import DEFAULT_K, MODES, MOST_COLLECTIONS, MOST_K, ON_DUPLICATE
from collections_app.models.collections import LONGEST_NAME
from collections_app.search.metadata_listing import DEFAULT_LIMIT, MOST_DOCUMENTS
from system.openapi import Object


def schema(type: str, about: str, **more: Any) -> Object:
    return {"type": type, "description": about, **more}


NAME = {"minLength": 1, "maxLength": LONGEST_NAME}
FILTER = "Conditions on metadata as an encoded query, such as `status=active^priority>2`; empty is none."
PARAMETERS: dict[str, Object] = {
    "collection_name": schema("string", "The name of a collection.", **NAME),
    "collection_names": schema(
        "array",
        "Names of collections that are searched together.",
        items={"type": "string"},
        minItems=1,
        maxItems=MOST_COLLECTIONS,
    ),
    "query": schema("string", "What is looked for, in words; at most 8 KB.", minLength=1),
    "k": schema("integer", "How many passages.", minimum=1, maximum=MOST_K, default=DEFAULT_K),
    "metadata": schema("string", FILTER),
    "tag_info": schema("string", FILTER),
    "mode": schema("string", "By words and meaning, by meaning, or by words.", enum=list(MODES), default="hybrid"),
    "alpha": schema(
        "number", "The share of words in a hybrid search; without it the collection's.", minimum=0, maximum=1
    ),
    "limit": schema("integer", "How many documents.", minimum=1, maximum=MOST_DOCUMENTS, default=DEFAULT_LIMIT),
    "offset": schema("integer", "How many documents are left out before.", minimum=0, default=0),
    "id_value": schema("string", "The `doc_id` of a document.", minLength=1),
    "text": schema("string", "What is to be found.", minLength=1),
    "doc_id": schema("string", "What the document is to be called; without it a new id.", **NAME),
    "on_duplicate": schema(
        "string",
        "If the document exists: `skip` returns it, `replace` replaces its content, `error` returns 409.",
        enum=list(ON_DUPLICATE),
        default="skip",
    ),
    "wait": schema("boolean", "`false`: answer 202 at once, a worker does the rest.", default=True),
}
METADATA = schema(
    "object",
    "`sys_id`, `status`, `type` are texts, `priority` an integer, `flag` a boolean, `created` an ISO 8601 time in UTC; "
    "other fields are free.",
    additionalProperties=True,
)
FILE = schema("string", "PDF, DOCX, PPTX, XLSX, ODT, HTML, Markdown, CSV, EML, RTF or plain text.", format="binary")


def fields(**properties: Object) -> Object:
    return {"type": "object", "required": list(properties), "properties": properties}


def either(type: str) -> Object:
    return {"type": [type, "null"]}


TEXT: Object = {"type": "string"}
COUNT: Object = {"type": "integer", "minimum": 0}
NUMBER: Object = {"type": "number"}
MOMENT: Object = {"type": "string", "format": "date-time"}
FREE: Object = {"type": "object", "additionalProperties": True}
TEXTS: Object = {"type": "array", "items": TEXT}
OK: Object = {"const": "OK"}
SCORE: Object = {"type": ["number", "null"]}

SCHEMAS: dict[str, Object] = {
    "Loaded": fields(
        status=OK,
        doc_id=TEXT,
        collection_name=TEXT,
        document_status={"enum": ["queued", "extracting", "splitting", "embedding", "ready", "empty", "failed"]},
        duplicate={"type": "boolean"},
        chunks_count=COUNT,
        pages=either("integer"),
        sha256=TEXT,
        metadata=FREE,
        status_url=TEXT,
        warnings=TEXTS,
    ),
    "Passage": fields(
        id=TEXT,
        type={"const": "Document"},
        page_content=TEXT,
        metadata=FREE,
        doc_id=TEXT,
        collection_name=TEXT,
        chunk_index=COUNT,
        chunks_count=COUNT,
        page=either("integer"),
        page_end=either("integer"),
        char_start=COUNT,
        char_end=COUNT,
        heading_path=TEXTS,
        filename=TEXT,
        score=NUMBER,
        scores=fields(vector=SCORE, text=SCORE),
        highlights={"type": "array", "items": {"type": "array", "items": COUNT, "minItems": 2, "maxItems": 2}},
    ),
    "Content": fields(
        doc_id=TEXT,
        collection_name=TEXT,
        page_content=TEXT,
        metadata=FREE,
        filename=TEXT,
        chunks_count=COUNT,
        created_at=MOMENT,
        updated_at=MOMENT,
    ),
    "Collection": fields(
        collection_name=TEXT,
        documents_count=COUNT,
        chunks_count=COUNT,
        documents_by_status={"type": "object", "additionalProperties": COUNT},
        embedding_model=TEXT,
        chunk_size=COUNT,
        chunk_overlap=COUNT,
        created_at=MOMENT,
        updated_at=MOMENT,
    ),
    "DeletedDocument": fields(
        status=OK, collection_name=TEXT, doc_id=TEXT, deleted={"const": True}, deleted_chunks=COUNT
    ),
    "DeletedCollection": fields(
        status=OK, collection_name=TEXT, deleted={"const": True}, deleted_documents=COUNT, deleted_chunks=COUNT
    ),
}
