"""The operators in words, between the label of a column and a value: "Due date", "is before", "1 May 2024"."""

from system.encoded_query import ComparisonKind

# In the order in which the condition builder offers them.
LABELS = {
    "=": "is", "!=": "is not", "IN": "is one of", "NOT IN": "is none of",
    "DYNAMIC": "is", "ISNOT_DYNAMIC": "is not",
    "LIKE": "contains", "NOTLIKE": "does not contain", "STARTSWITH": "starts with", "ENDSWITH": "ends with",
    "HAS": "includes", "HASNOT": "does not include",
    "CONTAINS_DYNAMIC": "includes", "DOESNOTCONTAIN_DYNAMIC": "does not include",
    "ON": "is", "NOTON": "is not", "RELATIVELT": "is before", "RELATIVEGT": "is after",
    "<": "is less than", ">": "is greater than", "<=": "is at most", ">=": "is at least", "BETWEEN": "is between",
    "ISEMPTY": "is empty", "ISNOTEMPTY": "is not empty",
    "ARE": "contains the words", "INSTANCEOF": "belongs to the table",
    "RELATIVELE": "is at or before", "RELATIVEGE": "is at or after",
    "RELATIVEEE": "is in the same unit of time as",
    "YEAR_IS": "is in the year", "QUARTER_IS": "is in quarter", "MONTH_IS": "is in month", "WEEK_IS": "is in week",
    "DAY_IS": "is on day of the month", "DAY_OF_WEEK_IS": "is on day of the week", "HOUR_IS": "is in hour",
    "SAMEAS": "is the same as", "NSAMEAS": "is different from",
    "GT_FIELD": "is greater than", "LT_FIELD": "is less than",
    "GT_OR_EQUALS_FIELD": "is at least", "LT_OR_EQUALS_FIELD": "is at most",
    "MORETHAN": "is more than", "LESSTHAN": "is less than",
    "EMPTYSTRING": "is an empty text", "ANYTHING": "is anything", "NOTHING": "matches no record",
}  # fmt: skip
_DATE_LABELS = {
    "=": "is exactly", "!=": "is not exactly",
    "<": "is before", ">": "is after", "<=": "is at or before", ">=": "is at or after",
    "GT_FIELD": "is after", "LT_FIELD": "is before",
    "GT_OR_EQUALS_FIELD": "is at or after", "LT_OR_EQUALS_FIELD": "is at or before",
}  # fmt: skip


def operator_label(name: str, kind: ComparisonKind) -> str:
    """
    >>> operator_label("<", ComparisonKind.DATE), operator_label("<", ComparisonKind.INTEGER)
    ('is before', 'is less than')
    """
    is_date = kind in (ComparisonKind.DATE, ComparisonKind.DATETIME)
    return (is_date and _DATE_LABELS.get(name)) or LABELS[name]
