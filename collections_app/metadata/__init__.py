"""Validates document metadata, and compiles metadata filters to SQL. Pure."""
