"""HTML pages: collections, search, documents, metadata."""
