"""Scope, keyword and vector retrieval, fusion, passages."""
