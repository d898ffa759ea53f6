"""Parses the body and parameters of a bulk request. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from system.errors import InvalidParameter
from system.strict_json import InvalidJson
from tableapi.query.parameters import RawParameters, parse_choice

MAX_BULK_RECORDS = 10_000
QUERY_KEYS = {"sysparm_query", "expected", "values"}


@dataclass(frozen=True)
class BulkRequest:
    """The records in the body, or a query that selects them and the values to set in all of them."""

    records: Sequence[dict[str, Any]] = ()
    query: str = ""
    expected_count: int = 0
    values: dict[str, Any] | None = None
    # Whether to write the other records if one cannot be written.
    continues_on_error: bool = False
    is_time_limited: bool = True


def parse_bulk(body: Any, raw: RawParameters, *, allows_query: bool, allows_values: bool = False) -> BulkRequest:
    continues_on_error = parse_choice(raw, "on_error", ("", "stop", "continue")) == "continue"
    if isinstance(body, dict) and allows_query:
        return BulkRequest(continues_on_error=continues_on_error, **_parse_query(body, allows_values))
    if not isinstance(body, list):
        keys = "sysparm_query, expected and values" if allows_values else "sysparm_query and expected"
        alternative = f", or an object with {keys}" if allows_query else ""
        raise InvalidJson(f"The body must be an array of JSON objects{alternative}.")
    if len(body) > MAX_BULK_RECORDS:
        raise InvalidJson(f"Send at most {MAX_BULK_RECORDS:,} records in one request.")
    if (position := next((i for i, record in enumerate(body) if not isinstance(record, dict)), None)) is not None:
        raise InvalidJson("Each record must be a JSON object.", position=position)
    return BulkRequest(body, continues_on_error=continues_on_error)


def _parse_query(body: dict[str, Any], allows_values: bool) -> dict[str, Any]:
    query, expected = body.get("sysparm_query"), body.get("expected")
    if unknown := body.keys() - (QUERY_KEYS if allows_values else QUERY_KEYS - {"values"}):
        raise InvalidJson(f'The body cannot contain "{min(unknown)[:80]}".')
    if not isinstance(query, str) or not query.strip("^ "):
        raise InvalidParameter("sysparm_query must be a non-empty encoded query.", field="sysparm_query")
    if not isinstance(expected, int) or isinstance(expected, bool) or not 0 <= expected <= MAX_BULK_RECORDS:
        message = f"expected must be the number of records that the query matches, at most {MAX_BULK_RECORDS:,}."
        raise InvalidParameter(message, field="expected")
    values = body.get("values")
    if allows_values and not isinstance(values, dict):
        raise InvalidParameter("values must be an object of column names and values.", field="values")
    return {"query": query, "expected_count": expected, "values": values}
