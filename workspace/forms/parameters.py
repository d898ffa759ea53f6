"""Builds parameters and queries of the Table API, and reads lists with them."""

from collections.abc import Iterable

from django.utils.datastructures import MultiValueDict

from tableapi.catalogue.definitions import Table
from tableapi.query.parameters import parse_list
from tableapi.read import pipeline
from tableapi.read.context import ReadContext
from tableapi.read.list_page import ListResult


def parameters(**values: str | int) -> MultiValueDict[str, str]:
    """Parameters as a request would contain them, without empty ones."""
    return MultiValueDict({name: [str(value)] for name, value in values.items() if value != ""})


def quoted_value(value: str) -> str:
    """The value of a condition in braces, so that no character ends it.

    >>> quoted_value("a^b}")
    '{a^b}}}'
    """
    return f"{{{value.replace('}', '}}')}}}"


def output_parameters(fields: Iterable[str], **values: str | int) -> MultiValueDict[str, str]:
    """The parameters that return these fields with their display values."""
    values = {"sysparm_display_value": "all", "sysparm_exclude_reference_link": 1, **values}
    return parameters(sysparm_fields=",".join(dict.fromkeys(fields)), **values)


def read_list(context: ReadContext, table: Table, names: Iterable[str], **values: str | int) -> ListResult:
    """Records with these columns and their display values. `values` are other parameters."""
    return pipeline.fetch_list(context, table.name, parse_list(output_parameters(names, **values)))
