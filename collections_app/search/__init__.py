"""Hybrid search: scope, keyword and vector retrieval, fusion, passages."""
