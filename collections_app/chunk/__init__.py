"""Splits text into passages, preferably at headings. Pure."""
