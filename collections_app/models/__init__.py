"""The tables of document collections.

    EmbeddingSpace ─< Collection ─< Document ─< Version ─< Piece            the original bytes
                                                       ├── ExtractedText    their text
                                                       └─< Chunk ── ChunkWords ─< ChunkVector
                      Collection ─< TermCount                               the number of chunks with a word

A version is one content of a document, and the row of the queue while it is being processed. Searches see the version
whose `is_searched` is true; replacing a document moves it to the next version in one transaction.
"""

from collections_app.models.chunks import Chunk, ChunkVector, ChunkWords, TermCount
from collections_app.models.collections import Collection, EmbeddingSpace
from collections_app.models.documents import Document, ExtractedText, Piece, Version

__all__ = [
    "Chunk", "ChunkVector", "ChunkWords", "Collection", "Document", "EmbeddingSpace", "ExtractedText", "Piece",
    "TermCount", "Version",
]  # fmt: skip
