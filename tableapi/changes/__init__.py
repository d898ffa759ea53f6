"""Reads the change log: the history of a record and the change feed of a table."""
