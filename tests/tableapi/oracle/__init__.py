"""What the Table API may respond, computed naively in plain Python, to compare with the SQL.

    answers    which records, fields and query results a caller sees
      access       access rules; what a caller's values and a rule's values can see
      conditions   a parsed query as a test of one record
      operators    what each operator means, for one value
      literals     texts of a query as Python values; what two values are compared by
      world        catalogue and records; the caller

Simple rather than fast: no SQL, no index, no cache, and none of the tested code. It shares with that code
only the catalogue's dataclasses and the language, `system.encoded_query`, which has tests of its own.
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
