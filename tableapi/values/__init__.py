"""Parses, compares, displays and provides defaults for column values."""
