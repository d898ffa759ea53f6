"""The tables of document collections.

    EmbeddingSpace ─< Collection ─< Document ─< Version ─< Piece            the original bytes
                                                       ├── ExtractedText    their text
                                                       └─< Chunk (── ChunkWords, ─< ChunkVector)
                      Collection ─< TermCount                               the number of chunks with a word

A version is one state of a document's content, and its row in the queue while it is being processed. Searches use the
version whose `is_searched` is true; replacing a document sets it on the new version in one transaction.
"""

from collections_app.models.chunks import Chunk, ChunkVector, ChunkWords, TermCount
from collections_app.models.collections import Collection, EmbeddingSpace
from collections_app.models.documents import Document, ExtractedText, Piece, Version

__all__ = [
    "Chunk", "ChunkVector", "ChunkWords", "Collection", "Document", "EmbeddingSpace", "ExtractedText", "Piece",
    "TermCount", "Version",
]  # fmt: skip
