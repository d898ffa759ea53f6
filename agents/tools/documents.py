"""Tools that search documents and read around a passage."""

import re
from typing import Annotated, Any

from django.db.models.functions import Substr
from pydantic import Field

from agents.tools.registry import NO_NAMES, Agent, tool
from collections_app import access
from collections_app.http import parameters
from collections_app.http.api.documents import find_document
from collections_app.http.parameters import MAX_COLLECTIONS, RequestParameters
from collections_app.models import ExtractedText, Version
from collections_app.pages.presenters import page_range, passage_url
from collections_app.search.pipeline import SearchRequest, search
from system.errors import Conflict, InvalidParameter, NotFound
from system.http.error_responses import own_url

DEFAULT_PASSAGES, MAX_PASSAGES = 5, 20
MAX_NEIGHBOURS = 5
# The collection, the document, its generation and the number of the passage.
PASSAGE_ID = re.compile(r"([0-9a-z]{1,32})-([0-9a-z]{1,32})-([0-9]{1,9})-([0-9]{1,9})")
Neighbours = Annotated[int, Field(ge=0, le=MAX_NEIGHBOURS, description="Number of further passages.")]


@tool()
def search_documents(
    agent: Agent,
    query: Annotated[str, Field(description="A question or words.")],
    collections: Annotated[list[str], Field(description="Names of collections. Empty: all you can read.")] = NO_NAMES,
    filter: Annotated[str, Field(description="Conditions on metadata, such as type=manual^priority<3")] = "",
    limit: Annotated[int, Field(ge=1, le=MAX_PASSAGES)] = DEFAULT_PASSAGES,
) -> dict[str, Any]:
    """Finds the passages of documents that answer a question, best first, by words and by meaning. Cite a passage with
    its document and link. read_around shows more of the text."""
    request = SearchRequest(
        query=parameters.read_query("query", query),
        k=limit,
        filter=parameters.read_filter(RequestParameters({"filter": [filter]}), "filter"),
    )
    names = parameters.read_collection_names("collections", collections) if collections else None
    readable = access.readable_collections(agent.user)[:MAX_COLLECTIONS]
    opened = access.open_collections(agent.user, names) if names else list(readable)
    result = search(opened, request)
    passages = [
        {
            "text": hit.page_content,
            "document": hit.filename or hit.doc_id,
            "collection": hit.collection_name,
            "headings": hit.heading_path,
            **_pages(hit.page, hit.page_end, hit.page_label, hit.page_label_end),
            **_citation(agent, hit.collection_id, hit.document_id, hit.generation, hit.chunk_index),
        }
        for hit in result.hits
    ]
    note = "Semantic search is unavailable. Only words were compared." if result.is_without_vectors else None
    return {"passages": passages, "note": note}


@tool()
def read_around(
    agent: Agent,
    passage: Annotated[str, Field(description="A passage, as search_documents names it.")],
    before: Neighbours = 1,
    after: Neighbours = 1,
) -> dict[str, Any]:
    """Reads a passage of a document with the text before and after it. To read on, call it with next_passage."""
    match = PASSAGE_ID.fullmatch(passage)
    if match is None:
        raise InvalidParameter("Expected a passage that search_documents returned.", field="passage")
    document = find_document(access.open_collection_by_id(agent.user, match[1], "read"), match[2])
    generation, number = int(match[3]), int(match[4])
    version = Version.objects.filter(document=document, is_searched=True, generation=generation).first()
    if version is None:
        raise Conflict("The document has changed since the search. Search again.", field="passage")
    chunks = list(version.chunks.filter(number__gte=number - before, number__lte=number + after).order_by("number"))
    if number not in [chunk.number for chunk in chunks]:
        raise NotFound("The document does not contain this passage.", field="passage")
    first, last = chunks[0], chunks[-1]
    # Not the texts of the passages, which overlap.
    span = Substr("text", first.char_start + 1, last.char_end - first.char_start)
    text = ExtractedText.objects.filter(version=version).values_list(span, flat=True).first() or ""
    following = f"{match[1]}-{match[2]}-{generation}-{last.number + 1}"
    return {
        "text": first.table_header() + text,
        "document": document.page_title(),
        "collection": document.collection.name,
        "headings": first.heading_path,
        **_pages(first.page, last.page_end, first.page_label, last.page_label_end),
        "next_passage": following if last.number + 1 < version.chunks_count else None,
        **_citation(agent, match[1], match[2], generation, number),
    }


def _pages(first: int | None, last: int | None, first_label: str | None, last_label: str | None) -> dict[str, str]:
    return {"pages": page_range(first, last, first_label, last_label)} if first else {}


def _citation(agent: Agent, collection_id: str, document_id: str, generation: int, number: int) -> dict[str, str]:
    return {
        "passage": f"{collection_id}-{document_id}-{generation}-{number}",
        "link": own_url(agent.request, passage_url(collection_id, document_id, generation, number)),
    }
