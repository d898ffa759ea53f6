"""Finds conditions and values that name a record by its id, which another installation does not have."""

import re
from collections.abc import Iterator

from system.encoded_query import Condition, QueryError, ValueKind, parse
from system.errors import BadRequest
from tableapi.access.permissions import predicates_in
from tableapi.catalogue.definitions import Catalogue
from tableapi.query.path_resolver import RuleScope

from .kinds import COLUMN, RULE, SET_RULE, Item

# An id of this product or of a similar one.
ID = re.compile(r"(?<![0-9a-zA-Z])(?:[0-9]{18}|[0-9a-f]{32})(?![0-9a-zA-Z])")
FUNCTION = "javascript:"
PROBLEM = "names a record by its ID, which other installations do not have. Use a name or another condition"
QUERIES = {RULE.name: "condition", "shared_list": "query"}
VALUES = {COLUMN.name: ("default_value",), SET_RULE.name: ("value", "set_to")}


def id_attributes(catalogue: Catalogue, item: Item) -> Iterator[str]:
    """Yield the attributes of the item that contain an id."""
    query = QUERIES.get(item.kind.name)
    if query and has_id_in_query(catalogue, item.key[0], item.values[query]):
        yield query
    for name in VALUES.get(item.kind.name, ()):
        if ID.search(item.values[name]) or (name != "default_value" and _watches_reference(catalogue, item, name)):
            yield name


def has_id_in_query(catalogue: Catalogue, table_name: str, text: str) -> bool:
    try:
        query = parse(text)
    except QueryError:
        return bool(ID.search(text))
    if any(ID.search(condition.value) for condition in query.conditions()):
        return True
    table = catalogue.tables.get(table_name)
    try:
        predicates = list(predicates_in(RuleScope(catalogue), table, query)) if table else []
    except (QueryError, BadRequest):
        return False
    return any(
        _takes_text(predicate.condition) and (predicate.path.column.name == "sys_id" or predicate.path.column.reference)
        for predicate in predicates
    )


def _takes_text(condition: Condition) -> bool:
    return condition.row.kind in (ValueKind.TEXT, ValueKind.LIST) and not condition.value.startswith(FUNCTION)


def _watches_reference(catalogue: Catalogue, item: Item, name: str) -> bool:
    table, text = catalogue.tables.get(item.key[0]), item.values[name]
    column = table.columns.get(item.values["watched" if name == "value" else "column"]) if table else None
    return bool(text) and not text.startswith(FUNCTION) and column is not None and bool(column.reference)
