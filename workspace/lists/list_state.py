"""The parameters of a list page, and the URLs of the same list with other parameters. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import urlencode

from django.urls import reverse

from tableapi.query.parameters import MAX_FIELDS, RawParameters, parse_names, parse_text

# They tell where a page starts.
POSITION_PARAMETERS = ("sysparm_cursor", "sysparm_page")
# `saved` is the id of a saved list.
PARAMETERS = ("sysparm_query", "sysparm_view", "group", "saved", *POSITION_PARAMETERS)


@dataclass(frozen=True)
class ListState:
    """What a list page shows.

    >>> ListState("task", {"sysparm_query": "a=1", "sysparm_page": "2"}).first_page(group="b").parameters
    {'sysparm_query': 'a=1', 'group': 'b'}
    """

    table: str
    parameters: Mapping[str, str] = field(default_factory=dict)

    @property
    def query(self) -> str:
        return self.parameters.get("sysparm_query", "")

    @property
    def columns(self) -> list[str]:
        """The paths of the columns; empty for the person's own."""
        return self.parameters["columns"].split(",") if "columns" in self.parameters else []

    @property
    def position(self) -> dict[str, str]:
        return {name: value for name, value in self.parameters.items() if name in POSITION_PARAMETERS}

    def first_page(self, **changes: str) -> "ListState":
        """The beginning of the list with other parameters."""
        values = {name: value for name, value in self.parameters.items() if name not in POSITION_PARAMETERS}
        return ListState(self.table, {name: value for name, value in {**values, **changes}.items() if value})

    @cached_property
    def start(self) -> "ListState":
        return self.first_page()

    @cached_property
    def encoded(self) -> str:
        return urlencode(self.parameters)

    @property
    def url(self) -> str:
        return f"{reverse('table-list', args=[self.table])}{'?' if self.parameters else ''}{self.encoded}"


def parse_state(table: str, raw: RawParameters) -> ListState:
    """Parse the parameters. Raises InvalidParameter for one that was given more than once."""
    values = {name: parse_text(raw, name) for name in PARAMETERS}
    values["columns"] = ",".join(parse_names(raw, "columns", MAX_FIELDS))
    return ListState(table, {name: value for name, value in values.items() if value})
