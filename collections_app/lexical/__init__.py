"""Words of chunks: tokens, language, BM25 statistics."""
