"""What the Table API may respond, computed naively in plain Python, to compare with the SQL.

    answers    who sees which records, fields, answers to a query        select, visible, field, matches, can
      access       access rules; what a caller's values and a rule's values can see
      conditions   a parsed query as a test of one record
      operators    what each operator means, for one value
      literals     texts of a query as Python values; what two values are compared by
      world        catalogue and records; the caller

Obviously right rather than quick: no SQL, no index, no cache, and nothing of the code that is tested. It shares with
it only the catalogue's dataclasses and the language, `system.encoded_query`, which has tests of its own.
"""

from __future__ import annotations

from .answers import can, field_value, row_matches, select_ids, visible
from .world import Caller, QueryRefused, Row, World, text_of_html

__all__ = [
    "Caller",
    "QueryRefused",
    "Row",
    "World",
    "can",
    "field_value",
    "row_matches",
    "select_ids",
    "text_of_html",
    "visible",
]
