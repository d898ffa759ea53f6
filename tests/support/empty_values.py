"""Whether a record whose column is empty matches an operator, as the documentation says."""

MATCHING_EMPTY = frozenset({
    "!=", "NOT IN", "NOTLIKE", "ISEMPTY", "ANYTHING", "NOTON", "ISNOT_DYNAMIC", "HASNOT", "DOESNOTCONTAIN_DYNAMIC",
})  # fmt: skip
# These also depend on the other column.
DEPENDING = {"SAMEAS": "if both are empty", "NSAMEAS": "unless both are empty"}


def empty_value_match(operator: str) -> str:
    """
    >>> empty_value_match("!="), empty_value_match("=")
    ('yes', 'no')
    """
    return DEPENDING.get(operator, "yes" if operator in MATCHING_EMPTY else "no")
