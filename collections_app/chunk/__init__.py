"""Splits text into passages, at headings. Pure."""
