"""Builds parameters and queries of the Table API."""

from django.utils.datastructures import MultiValueDict


def parameters(**values: str | int) -> MultiValueDict[str, str]:
    """Parameters as a request would contain them, without empty ones."""
    return MultiValueDict({name: [str(value)] for name, value in values.items() if value != ""})


def quoted_value(value: str) -> str:
    """The value of a condition in braces, so that no character ends it.

    >>> quoted_value("a^b}")
    '{a^b}}}'
    """
    return f"{{{value.replace('}', '}}')}}}"
