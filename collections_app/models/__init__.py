"""The tables of document collections.

    EmbeddingSpace ─< Collection ─< Document ─< Version ─< Piece            the original bytes
                                                       ├── ExtractedText    their text
                                                       └─< Chunk (── ChunkWords, ─< ChunkVector)
                      Collection ─< TermCount                               the number of chunks with a word
                      Collection ─< Source ─< SourceFile                    web pages and folders to load documents from
                      Collection ─< EvaluationQuestion, ─< EvaluationRun    the measured search quality

A version is one state of a document's content, and its row in the queue while it is being processed. Searches use the
version whose `is_searched` is true; replacing a document sets it on the new version in one transaction.
"""

from .collections import Collection, EmbeddingSpace
from .documents import Chunk, ChunkVector, ChunkWords, Document, ExtractedText, Piece, TermCount, Version
from .evaluation import EvaluationQuestion, EvaluationRun
from .sources import Source, SourceFile

__all__ = [
    "Chunk", "ChunkVector", "ChunkWords", "Collection", "Document", "EmbeddingSpace", "EvaluationQuestion",
    "EvaluationRun", "ExtractedText", "Piece", "Source", "SourceFile", "TermCount", "Version",
]  # fmt: skip
