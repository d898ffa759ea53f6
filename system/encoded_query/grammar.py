"""Parses an encoded query in one pass, without backtracking; errors contain the position.

    start     := [query] tail*
    query     := group ("^NQ" group)*
    group     := term ("^" term)*
    term      := factor ("^OR" factor)*
    factor    := condition | "(" query ")"
    tail      := "^ORDERBY" path | "^ORDERBYDESC" path
    condition := path OPERATOR [value]
    value     := "{" anything "}" | text up to "^" or the group's ")"

Tails can be anywhere at top level. Whether something is a separator or text never depends on what follows it.
"""

import re

from .dialect import RECORDS, Dialect, read_path, read_quoted
from .errors import QueryError
from .functions import CALL_PATTERN
from .operators import ALIASES, REFUSED_OPERATORS, ValueKind, match_operator
from .tree import Condition, Group, OrderBy, Query, SubQuery, Term
from .values import read_value

# PostgreSQL cannot store these.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Possessive, so that no text makes them backtrack.
_VALUE = re.compile(r"[^^]*+")
# Chosen: the ")" of a value function belongs to the call. Taken literally, the grammar would close the group and
# leave half a call, which is an error, so no valid query changes its meaning.
_VALUE_IN_GROUP = re.compile(rf"(?:{CALL_PATTERN}|[^^)])*+")
_UNKNOWN_TOKEN = re.compile(r"[A-Z_]++|.", re.DOTALL)
_OPERATORS_WITHOUT_VALUE = {"=": "ISEMPTY", "!=": "ISNOTEMPTY"}


def parse(text: str, dialect: Dialect = RECORDS) -> Query:
    """Parses the text; raises only `QueryError`.

    >>> [len(term.factors) for term in parse("a=1^b=2^ORc=3").groups[0].terms]
    [1, 2]
    >>> parse("nameISNT")
    Traceback (most recent call last):
    ...
    system.encoded_query.errors.QueryError: unknown operator at position 4: 'ISNT'
    """
    if unstorable := _UNSTORABLE.search(text):
        raise QueryError("invalid character", unstorable.start(), ascii(unstorable.group()))
    if len(text.encode()) > dialect.max_bytes:
        raise QueryError(f"the query is longer than {dialect.max_bytes} bytes")
    return _Parser(text, dialect).start()


class _Parser:
    """A recursive-descent parser. Each method reads one rule of the grammar and leaves `position` after it."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.position = 0
        self.depth = 0
        self.condition_count = 0
        self.order: list[OrderBy] = []

    def start(self) -> Query:
        # "the first '^' of a tail may be missing"
        if self.text.startswith("ORDERBY"):
            self.order_clause("ORDERBY")
        self.order_clauses()
        if self.is_at_end():
            return Query((), tuple(self.order))
        if self.order:
            self.accept("^")
        groups = self.query()
        if not self.is_at_end():
            raise self.error("^ or the end of the query is expected")
        return Query(groups, tuple(self.order))

    def is_at_end(self) -> bool:
        # "a final '^EQ' is ignored"
        return self.position == len(self.text) or (self.position == len(self.text) - 3 and self.text.endswith("^EQ"))

    def query(self) -> tuple[Group, ...]:
        groups = [self.group()]
        while self.accept("^NQ"):
            groups.append(self.group())
        return tuple(groups)

    def group(self) -> Group:
        terms = [self.term()]
        while not self.is_at_end() and not self.text.startswith("^NQ", self.position) and self.accept("^"):
            terms.append(self.term())
        return Group(tuple(terms))

    def term(self) -> Term:
        factors = [self.factor()]
        while self.accept("^OR"):
            factors.append(self.factor())
        return Term(tuple(factors))

    def factor(self) -> Condition | SubQuery:
        factor = self.sub_query() if self.text.startswith("(", self.position) else self.condition()
        # A tail can only begin after a factor, so the methods above never see one.
        self.order_clauses()
        return factor

    def sub_query(self) -> SubQuery:
        start = self.position
        self.position += 1
        self.depth += 1
        if self.depth > self.dialect.max_depth:
            raise QueryError(f"more than {self.dialect.max_depth} levels of parentheses", start, "(")
        groups = self.query()
        if not self.accept(")"):
            if self.position < len(self.text):
                raise self.error("^ or ) is expected")
            raise QueryError("unclosed (", start, "(")
        self.depth -= 1
        return SubQuery(groups, start)

    def order_clauses(self) -> None:
        while self.text.startswith("^ORDERBY", self.position):
            if self.depth:
                raise self.error("ORDERBY cannot be used inside parentheses")
            self.order_clause("^ORDERBY")

    def order_clause(self, keyword: str) -> None:
        start = self.position
        self.position += len(keyword)
        is_descending = self.accept("DESC")
        path_position = self.position
        path, self.position = read_path(self.text, self.position, self.dialect)
        self.order.append(OrderBy(path, is_descending, path_position))
        if len(self.order) > self.dialect.max_sort_keys:
            raise QueryError(f"more than {self.dialect.max_sort_keys} sort keys", start, "ORDERBY")

    def condition(self) -> Condition:
        start = self.position
        self.count_conditions(1, start)
        path, self.position = read_path(self.text, start, self.dialect)
        operator, operator_position = self.operator(), self.position
        self.position += len(operator)
        value, value_position = self.value()
        name = ALIASES.get(operator, operator)
        if not value:
            # "`f=` is empty, `f!=` is not empty": decided here, so that no reader of the tree can forget it.
            name = _OPERATORS_WITHOUT_VALUE.get(name, name)
        condition = Condition(path, name, value, start, value_position)
        only_path = condition.row.only_path
        if only_path and path != only_path:
            raise QueryError(f"{name} can only be used with {'.'.join(only_path)}", operator_position, operator)
        # Read here, so that an invalid value is refused even if nothing uses it.
        parsed = read_value(condition, self.dialect)
        if condition.row.kind is ValueKind.WORDS and isinstance(parsed, tuple):
            # Each word is compared separately, in at least one column.
            self.count_conditions(len(parsed) - 1, start)
        return condition

    def count_conditions(self, number: int, start: int) -> None:
        self.condition_count += number
        if self.condition_count > (maximum := self.dialect.max_conditions):
            raise QueryError(f"more than {maximum} conditions", start, self.text[start : start + 12])

    def operator(self) -> str:
        spelling = match_operator(self.text, self.position)
        if spelling is None:
            token = _UNKNOWN_TOKEN.match(self.text, self.position)
            if token is None:
                raise QueryError("an operator is expected", self.position)
            raise QueryError("unknown operator", self.position, token.group())
        if spelling in REFUSED_OPERATORS:
            raise QueryError(f"{spelling} is not supported here", self.position, spelling)
        return spelling

    def value(self) -> tuple[str, int]:
        """The value and the position of its text."""
        start = self.position
        if self.text.startswith("{", start):
            value, self.position = read_quoted(self.text, start)
            return value, start + 1
        match = (_VALUE_IN_GROUP if self.depth else _VALUE).match(self.text, start)
        value = match.group() if match else ""
        self.position += len(value)
        return value, start

    def accept(self, token: str) -> bool:
        is_present = self.text.startswith(token, self.position)
        if is_present:
            self.position += len(token)
        return is_present

    def error(self, message: str) -> QueryError:
        return QueryError(message, self.position, self.text[self.position : self.position + 12])
