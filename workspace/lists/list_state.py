"""The parameters of a list page, and the URLs of the same list with other parameters. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from tableapi.query.parameters import MAX_FIELDS, RawParameters, parse_names, parse_text

# The parameters that tell where a page starts.
POSITION_PARAMETERS = ("sysparm_cursor", "sysparm_page")


@dataclass(frozen=True)
class ListState:
    """What a list page shows. `columns` is empty for the person's own columns; `saved` is the id of a saved list."""

    table: str
    query: str = ""
    view: str = ""
    columns: tuple[str, ...] = ()
    group: str = ""
    saved: str = ""
    position: Mapping[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, str]:
        values = {
            "sysparm_query": self.query,
            "sysparm_view": self.view,
            "columns": ",".join(self.columns),
            "group": self.group,
            "saved": self.saved,
        }
        return {name: value for name, value in {**values, **self.position}.items() if value}

    @property
    def encoded(self) -> str:
        return urlencode(self.parameters)

    @property
    def first_page(self) -> "ListState":
        return replace(self, position={})

    def with_query(self, query: str, **changes: Any) -> "ListState":
        """The first page of the list with another query."""
        return replace(self, query=query, position={}, **changes)

    def url(self, name: str = "table-list", *arguments: str, **extra: str) -> str:
        """
        >>> ListState("task", query="state=1", position={"sysparm_page": "2"}).parameters
        {'sysparm_query': 'state=1', 'sysparm_page': '2'}
        """
        values = {**self.parameters, **extra}
        return f"{reverse(name, args=[self.table, *arguments])}{'?' if values else ''}{urlencode(values)}"


def parse_state(table: str, raw: RawParameters) -> ListState:
    """Parse the parameters. Raises InvalidParameter for one that was given more than once."""
    position = {name: value for name in POSITION_PARAMETERS if (value := parse_text(raw, name))}
    return ListState(
        table,
        parse_text(raw, "sysparm_query"),
        parse_text(raw, "sysparm_view"),
        parse_names(raw, "columns", MAX_FIELDS),
        parse_text(raw, "group"),
        parse_text(raw, "saved"),
        position,
    )
