"""A table with the names of the dialect, as its caller sees it: a column that the caller cannot read does not exist."""

from dataclasses import dataclass
from typing import Optional

from system.encoded_query import Condition, Group, OrderBy, Path, Query, QueryError, RelatedQuery, Term, parse
from system.errors import ServiceError
from tableapi.access.caller_view import CallerView
from tableapi.access.permissions import check_query
from tableapi.catalogue.definitions import Table
from tableapi.query.path_resolver import resolve_path, resolve_query

from .names import ServiceNowNames


@dataclass(frozen=True)
class QueriedTable:
    view: CallerView
    table: Table
    names: ServiceNowNames
    is_related: bool = False

    def is_named(self, name: str) -> bool:
        return self.names.find_table(self.view, name) is self.table

    def paths(self, name: str) -> list[Path]:
        """The visible native paths of a client's name, none if there is no such column."""
        paths = self.names.paths(self.view.catalogue, self.table, name)
        return [path for path in paths if resolve_path(self.view, self.table, path)]

    def only_path(self, name: str) -> str | None:
        """The only path of a name; None if there are several."""
        paths = self.paths(name)
        return ".".join(paths[0]) if len(paths) == 1 else None

    def sort_keys(self, name: str, is_descending: bool) -> list[OrderBy]:
        found = ((path, resolve_path(self.view, self.table, path)) for path in self.paths(name))
        return [OrderBy(path, is_descending) for path, end in found if end and end.column.column_type.is_sortable]

    def query(self, text: str) -> Query | None:
        """The native query; None if it is invalid."""
        try:
            query = parse(text)
            check_query(self.view, self.table, query)
        except (QueryError, ServiceError):
            return None
        return query

    def condition(self, text: str) -> Condition | None:
        query = self.query(text)
        conditions = tuple(query.conditions()) if query else ()
        return conditions[0] if len(conditions) == 1 else None

    def related(self, name: str) -> Optional["QueriedTable"]:
        """Another table that the caller can read, named as clients name it."""
        table = None if self.is_related else self.names.find_table(self.view, name)
        return QueriedTable(self.view, table, self.names, is_related=True) if table else None

    def can_relate(self, path: Path, related: "QueriedTable", column: Path) -> bool:
        """Whether the values of the path can be ids of the column."""
        query = RelatedQuery((), path=path, table=related.table.name, column=column)
        try:
            resolve_query(self.view, self.table, Query((Group((Term((query,)),)),)))
        except (QueryError, ServiceError):
            return False
        return True
