"""Reads the change log: the history of a record, and the feed of a table's changes."""
