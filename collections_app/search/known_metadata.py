"""The metadata fields and values that documents of collections have, for the filters of the search pages."""

from collections.abc import Sequence

from system.plain_sql import fetch_rows

# A page offers at most this much; other fields and values can be typed.
MAX_SCANNED_DOCUMENTS = 1000
MAX_FIELDS = 50
MAX_VALUES = 50
MAX_VALUE_LENGTH = 100

# Without an order, the scan stops after the first documents that it finds.
KNOWN_SQL = """
    WITH scanned AS (
        SELECT metadata FROM document_version WHERE collection_id = ANY(%s) AND is_searched LIMIT %s
    ), known AS (
        SELECT DISTINCT field.key AS name, item #>> '{}' AS value
        FROM scanned, jsonb_each(scanned.metadata) AS field, jsonb_path_query(field.value, 'lax $[*]') AS item
        WHERE jsonb_typeof(item) IN ('string', 'number', 'boolean')
    )
    SELECT name, (array_agg(value ORDER BY value) FILTER (WHERE length(value) <= %s))[:%s]
    FROM known GROUP BY name ORDER BY name LIMIT %s
"""


def known_fields(collection_ids: Sequence[str]) -> dict[str, list[str]]:
    """Returns field names with their values. The caller must be allowed to read the collections."""
    limits = [MAX_SCANNED_DOCUMENTS, MAX_VALUE_LENGTH, MAX_VALUES, MAX_FIELDS]
    return {name: values or [] for name, values in fetch_rows(KNOWN_SQL, [list(collection_ids), *limits])}
