"""The documented result of each operator for a record whose column is empty."""

MATCHES_EMPTY = frozenset({
    "!=", "NOT IN", "NOTLIKE", "ISEMPTY", "ANYTHING", "NOTON", "ISNOT_DYNAMIC", "HASNOT", "DOESNOTCONTAIN_DYNAMIC",
})  # fmt: skip
# The result of these operators also depends on the other column.
SAMEAS_RESULTS = {"SAMEAS": "if both are empty", "NSAMEAS": "unless both are empty"}


def empty_value_match(operator: str) -> str:
    """
    >>> empty_value_match("!="), empty_value_match("=")
    ('yes', 'no')
    """
    return SAMEAS_RESULTS.get(operator, "yes" if operator in MATCHES_EMPTY else "no")
