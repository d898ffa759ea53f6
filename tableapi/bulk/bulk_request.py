"""Parses the body and parameters of a bulk request. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from system.errors import BadRequest
from tableapi.query.parameters import RawParameters, parse_choice

MAX_BULK_RECORDS = 10_000
QUERY_KEYS = {"sysparm_query", "expected", "values"}


@dataclass(frozen=True)
class BulkRequest:
    """The records of the body, or a query for them with one body of values for all."""

    records: Sequence[dict[str, Any]] = ()
    query: str = ""
    expected: int = 0
    values: dict[str, Any] | None = None
    # Whether records are written although others cannot be.
    continues: bool = False


def parse_bulk(body: Any, raw: RawParameters, *, allows_query: bool, with_values: bool = False) -> BulkRequest:
    continues = parse_choice(raw, "on_error", ("", "stop", "continue")) == "continue"
    if isinstance(body, dict) and allows_query:
        return BulkRequest(continues=continues, **_parse_query(body, with_values))
    if not isinstance(body, list):
        alternative = ", or an object with sysparm_query and expected" if allows_query else ""
        raise _invalid(f"The body must be an array of JSON objects{alternative}.")
    if len(body) > MAX_BULK_RECORDS:
        raise _invalid(f"Send at most {MAX_BULK_RECORDS:,} records in one request.")
    if (position := next((at for at, record in enumerate(body) if not isinstance(record, dict)), None)) is not None:
        raise BadRequest("Each record must be a JSON object.", code="invalid_json", position=position)
    return BulkRequest(body, continues=continues)


def _parse_query(body: dict[str, Any], with_values: bool) -> dict[str, Any]:
    query, expected = body.get("sysparm_query"), body.get("expected")
    if unknown := body.keys() - (QUERY_KEYS if with_values else QUERY_KEYS - {"values"}):
        raise _invalid(f"The body cannot contain {min(unknown)[:80]}.")
    if not isinstance(query, str) or not query.strip("^ "):
        raise _invalid("sysparm_query must be an encoded query that is not empty.", "sysparm_query")
    if not isinstance(expected, int) or isinstance(expected, bool) or not 0 <= expected <= MAX_BULK_RECORDS:
        message = f"expected must be the number of records that the query matches, at most {MAX_BULK_RECORDS:,}."
        raise _invalid(message, "expected")
    values = body.get("values")
    if with_values and not isinstance(values, dict):
        raise _invalid("values must be an object of column names and values.", "values")
    return {"query": query, "expected": expected, "values": values}


def _invalid(message: str, field: str | None = None) -> BadRequest:
    return BadRequest(message, code="invalid_json" if field is None else "invalid_parameter", field=field)
