"""The tables of document collections.

    EmbeddingSpace ─< Collection ─< Document ─< Version ─< Piece            the bytes as they were sent
                                                       ├── ExtractedText    the text found in them
                                                       └─< Chunk ── ChunkWords ─< ChunkVector
                      Collection ─< TermCount                               in how many chunks a word stands

A version is one content of a document, and the row of the queue while it is being loaded. Searches see the version
whose `is_searched` is true: replacing a document flips it, in one transaction.
"""

from collections_app.models.chunks import Chunk, ChunkVector, ChunkWords, TermCount
from collections_app.models.collections import Collection, EmbeddingSpace
from collections_app.models.documents import Document, ExtractedText, Piece, Version

__all__ = [
    "Chunk",
    "ChunkVector",
    "ChunkWords",
    "Collection",
    "Document",
    "EmbeddingSpace",
    "ExtractedText",
    "Piece",
    "TermCount",
    "Version",
]
