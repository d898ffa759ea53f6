"""Rows and bytes of documents: store, count, delete, purge."""
