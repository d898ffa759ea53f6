"""Computes the expected responses of the Table API naively in plain Python, to compare with the SQL.

    answers    which records, fields and query results a caller sees
      access       access rules, and the values that callers and rules can read
      conditions   a parsed query as a predicate for one record
      operators    the meaning of each operator, for one value
      literals     query texts and stored values as comparable Python values
      world        catalogue, records and caller

Simple rather than fast: no SQL, no index, no cache, and none of the tested code. It shares with that code
only the catalogue's dataclasses and the query language, `system.encoded_query`, which has its own tests.
"""

from __future__ import annotations

from .answers import field_value, is_permitted, row_matches, select_ids, visible_rows
from .world import Caller, QueryRefused, Row, World, text_of_html

__all__ = [
    "Caller",
    "QueryRefused",
    "Row",
    "World",
    "field_value",
    "is_permitted",
    "row_matches",
    "select_ids",
    "text_of_html",
    "visible_rows",
]
