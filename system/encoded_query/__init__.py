"""The query language: one grammar for the Table API, the conditions of access rules and metadata filters.

`parse` turns a text into a tree of frozen values, `read_value` returns the typed value of a condition, `resolve` and
the `bounds` of a value apply the time and user of the request, and `sql` compiles a condition for a store.
Nothing here depends on a table, a connection or HTTP. The only error is `QueryError`.
"""

from .dialect import METADATA, RECORDS, Dialect, Path
from .errors import QueryError
from .functions import FUNCTIONS, SAMPLE_MOMENT, Moment, Operand, ValueFunction, read_operand, resolve
from .grammar import parse
from .operators import ALIASES, OPERATORS, REFUSED_OPERATORS, ComparisonKind, Operator, ValueKind
from .periods import Unit, end_of, shift, start_of
from .time_values import Distance, Period, RelativeTime, read_instant
from .tree import Condition, Group, OrderBy, Query, RelatedQuery, SubQuery, Term
from .values import ConditionValue, Range, read_boolean, read_list, read_value, read_words

__all__ = [
    "ALIASES", "FUNCTIONS", "METADATA", "OPERATORS", "RECORDS", "REFUSED_OPERATORS", "SAMPLE_MOMENT", "ComparisonKind",
    "Condition", "ConditionValue", "Dialect", "Distance", "Group", "Moment", "Operand", "Operator",
    "OrderBy", "Path", "Period", "Query", "QueryError", "Range", "RelatedQuery", "RelativeTime", "SubQuery", "Term",
    "Unit", "ValueFunction", "ValueKind", "end_of", "parse", "read_boolean", "read_instant", "read_list",
    "read_operand", "read_value", "read_words", "resolve", "shift", "start_of",
]  # fmt: skip
