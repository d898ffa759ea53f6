"""Writes many records in one request, singly or with one statement, and upserts records by a unique column."""
