"""The words of chunks: tokens, language detection, BM25 statistics."""
