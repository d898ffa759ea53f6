"""Creates small collections, loads documents with the product, and runs searches."""

from collections.abc import Sequence
from typing import Any

from collections_app import embed
from collections_app.documents import storage
from collections_app.ingest import worker
from collections_app.metadata.filter import parse_filter
from collections_app.models import Collection, Version
from collections_app.search.pipeline import SearchRequest, SearchResult, search

PRINTER_DOCUMENTS = {
    "toner": "Replace the toner cartridge of the printer when the red lamp blinks.",
    "paper": "The printer stops when its paper tray is empty. Fill in new sheets of paper.",
    "mail": "A full mailbox refuses new messages. Delete old messages or ask for more space.",
    "car": "Company cars are booked at the front desk, at least one day ahead.",
}


def make_collection(name: str = "help", **columns: Any) -> Collection:
    column_values = {"text_configuration": "english", **columns}
    collection = Collection.objects.create(
        name=name, space=column_values.pop("space", None) or embed.default_space(), **column_values
    )
    return Collection.objects.select_related("space").get(pk=collection.pk)


def add_document(collection: Collection, doc_id: str, text: str, **metadata: Any) -> Version:
    """Loads and processes a document, or its next version."""
    store_result = storage.store_document(
        collection=collection, data=text.encode(), filename=f"{doc_id}.txt", format="text", metadata=metadata,
        doc_id=doc_id, on_duplicate="replace", user_id="", takes_lease=True,
    )  # fmt: skip
    version = worker.process_in_request(store_result)
    assert version.state in ("ready", "empty"), version.error
    return version


def run_search(collections: Collection | Sequence[Collection], query: str, k: int = 10, **options: Any) -> SearchResult:
    searched_collections = [collections] if isinstance(collections, Collection) else list(collections)
    parsed_filter = parse_filter(options.pop("filter", ""))
    return search(searched_collections, SearchRequest(query=query, k=k, filter=parsed_filter, **options))


def hit_ids(result: SearchResult) -> list[str]:
    return [hit.doc_id for hit in result.hits]
