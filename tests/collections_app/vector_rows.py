"""Creates collections, documents and vectors as rows."""

import hashlib
from typing import Any

import numpy
from django.db import connection

from collections_app.embed.local_model import LocalModel
from collections_app.models import Chunk, ChunkVector, Collection, Document, EmbeddingSpace, Version
from collections_app.models.documents import VersionState

DIMENSIONS = 8


def vector_of(model: str, text: str) -> list[float]:
    """A pseudo-random vector that depends only on the model and the text."""
    seed = hashlib.sha256(f"{model}:{text}".encode()).digest()
    numbers = numpy.frombuffer(seed[:DIMENSIONS], dtype=numpy.uint8).astype(float) - 127.5
    unit_vector: list[float] = (numbers / numpy.linalg.norm(numbers)).tolist()
    return unit_vector


def make_local_model(name: str, embedded_texts: list[str] | None = None) -> LocalModel:
    """A local model; the texts that it embeds are added to `embedded_texts`."""

    def encode(texts: list[str]) -> Any:
        if embedded_texts is not None:
            embedded_texts.extend(texts)
        return numpy.array([vector_of(name, text) for text in texts])

    return LocalModel(name=name, dimensions=DIMENSIONS, load=lambda: encode)


def make_space(name: str, dimensions: int = DIMENSIONS) -> EmbeddingSpace:
    return EmbeddingSpace.objects.create(provider="local", model=name, dimensions=dimensions)


def make_collection(space: EmbeddingSpace, name: str = "manuals") -> Collection:
    collection = Collection(name=name, space=space)
    collection.save()
    collection.refresh_from_db()
    return collection


def make_version(
    collection: Collection,
    doc_id: str,
    chunk_count: int = 3,
    *,
    is_searched: bool = True,
    space: EmbeddingSpace | None = None,
) -> Version:
    """A version with chunks, and their vectors in `space` or the space of the collection."""
    document, _ = Document.objects.get_or_create(collection=collection, doc_id=doc_id, deleted_at=None)
    document.refresh_from_db()
    version = Version.objects.create(
        document=document,
        collection=collection,
        generation=Version.objects.filter(document=document).count() + 1,
        format="text",
        size=1,
        sha256="0" * 64,
        state=VersionState.READY if is_searched else VersionState.EMBEDDING,
        is_searched=is_searched,
        chunks_count=chunk_count,
    )
    new_chunks = [
        Chunk(version=version, collection=collection, number=number, text=f"{doc_id} {number}",
              heading_path=["Printers"], char_start=0, char_end=1)
        for number in range(chunk_count)
    ]  # fmt: skip
    Chunk.objects.bulk_create(new_chunks)
    insert_vectors(version, space or collection.space)
    return version


def insert_vectors(version: Version, space: EmbeddingSpace) -> None:
    ChunkVector.objects.bulk_create(
        ChunkVector(
            chunk=chunk,
            space=space,
            collection_id=version.collection_id,
            version=version,
            dimensions=space.dimensions,
            embedding=vector_of(space.model, f"Printers\n{chunk.text}"),
        )
        for chunk in Chunk.objects.filter(version=version)
    )


def stored_vectors(collection: Collection, space: EmbeddingSpace) -> dict[str, list[float]]:
    """The stored vectors by chunk text."""
    rows = ChunkVector.objects.filter(collection=collection, space=space).select_related("chunk")
    return {row.chunk.text: list(row.embedding) for row in rows}


def run_statement(statement: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchall() if cursor.description else []
