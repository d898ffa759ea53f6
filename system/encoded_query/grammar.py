"""Turns the text of an encoded query into a `Query`, or raises an error with the position; one pass, no backtracking.

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
from .operators import ALIASES, REFUSED, ValueKind, spelling_at
from .tree import Condition, Group, OrderBy, Query, SubQuery, Term
from .values import read

# PostgreSQL cannot store these.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# Possessive, so that no text makes them backtrack.
_VALUE = re.compile(r"[^^]*+")
# Chosen: the ")" of a value function belongs to the call. By the letter of the grammar it would close the group and
# leave half a call, which is an error, so no valid query changes its meaning.
_VALUE_IN_GROUP = re.compile(rf"(?:{CALL_PATTERN}|[^^)])*+")
_UNKNOWN_TOKEN = re.compile(r"[A-Z_]++|.", re.DOTALL)
_WITHOUT_VALUE = {"=": "ISEMPTY", "!=": "ISNOTEMPTY"}


def parse(text: str, dialect: Dialect = RECORDS) -> Query:
    """Parses the text; raises only `QueryError`.

    >>> [len(term.factors) for term in parse("a=1^b=2^ORc=3").groups[0].terms]
    [1, 2]
    >>> parse("nameISNT")
    Traceback (most recent call last):
    ...
    system.encoded_query.errors.QueryError: unknown operator at position 4: 'ISNT'
    """
    unstorable = _UNSTORABLE.search(text)
    if unstorable:
        raise QueryError("a character that cannot be stored", unstorable.start(), ascii(unstorable.group()))
    if len(text.encode()) > dialect.length:
        raise QueryError(f"longer than {dialect.length} bytes")
    return _Parser(text, dialect).start()


class _Parser:
    """The position in the text. Each method reads one rule of the grammar and leaves `at` after it."""

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.at = 0
        self.depth = 0
        self.conditions = 0
        self.order: list[OrderBy] = []

    def start(self) -> Query:
        # "the first '^' of a tail may be missing"
        if self.text.startswith("ORDERBY"):
            self.order_clause("ORDERBY")
        self.order_clauses()
        if self.is_over():
            return Query((), tuple(self.order))
        if self.order:
            self.take("^")
        groups = self.query()
        if not self.is_over():
            raise self.error("^ or the end of the query is expected")
        return Query(groups, tuple(self.order))

    def is_over(self) -> bool:
        # "a final '^EQ' is ignored"
        return self.at == len(self.text) or (self.at == len(self.text) - 3 and self.text.endswith("^EQ"))

    def query(self) -> tuple[Group, ...]:
        groups = [self.group()]
        while self.take("^NQ"):
            groups.append(self.group())
        return tuple(groups)

    def group(self) -> Group:
        terms = [self.term()]
        while not self.is_over() and not self.text.startswith("^NQ", self.at) and self.take("^"):
            terms.append(self.term())
        return Group(tuple(terms))

    def term(self) -> Term:
        factors = [self.factor()]
        while self.take("^OR"):
            factors.append(self.factor())
        return Term(tuple(factors))

    def factor(self) -> Condition | SubQuery:
        factor = self.sub_query() if self.text.startswith("(", self.at) else self.condition()
        # A tail can only begin after a factor, so the methods above never see one.
        self.order_clauses()
        return factor

    def sub_query(self) -> SubQuery:
        opened = self.at
        self.at += 1
        self.depth += 1
        if self.depth > self.dialect.depth:
            raise QueryError(f"more than {self.dialect.depth} levels of parentheses", opened, "(")
        groups = self.query()
        if not self.take(")"):
            if self.at < len(self.text):
                raise self.error("^ or ) is expected")
            raise QueryError("unclosed (", opened, "(")
        self.depth -= 1
        return SubQuery(groups, opened)

    def order_clauses(self) -> None:
        while self.text.startswith("^ORDERBY", self.at):
            if self.depth:
                raise self.error("ORDERBY cannot be used inside parentheses")
            self.order_clause("^ORDERBY")

    def order_clause(self, keyword: str) -> None:
        start = self.at
        self.at += len(keyword)
        is_descending = self.take("DESC")
        place = self.at
        path, self.at = read_path(self.text, self.at, self.dialect)
        self.order.append(OrderBy(path, is_descending, place))
        if len(self.order) > self.dialect.sort_keys:
            raise QueryError(f"more than {self.dialect.sort_keys} sort keys", start, "ORDERBY")

    def condition(self) -> Condition:
        start = self.at
        self.count_conditions(1, start)
        path, self.at = read_path(self.text, start, self.dialect)
        operator, operator_at = self.operator(), self.at
        self.at += len(operator)
        value, value_at = self.value()
        name = ALIASES.get(operator, operator)
        if not value:
            # "`f=` is empty, `f!=` is not empty": decided here, so that no reader of the tree can forget it.
            name = _WITHOUT_VALUE.get(name, name)
        condition = Condition(path, name, value, start, value_at)
        only_path = condition.row.only_path
        if only_path and path != only_path:
            raise QueryError(f"{name} can be used with {'.'.join(only_path)} only", operator_at, operator)
        # Read here, so that an invalid value is refused even if nothing uses it.
        parsed = read(condition, self.dialect)
        if condition.row.kind is ValueKind.WORDS and isinstance(parsed, tuple):
            # Each word is compared separately, in at least one column.
            self.count_conditions(len(parsed) - 1, start)
        return condition

    def count_conditions(self, number: int, start: int) -> None:
        self.conditions += number
        if self.conditions > self.dialect.conditions:
            raise QueryError(f"more than {self.dialect.conditions} conditions", start, self.text[start : start + 12])

    def operator(self) -> str:
        spelling = spelling_at(self.text, self.at)
        if spelling is None:
            token = _UNKNOWN_TOKEN.match(self.text, self.at)
            if token is None:
                raise QueryError("an operator is expected", self.at)
            raise QueryError("unknown operator", self.at, token.group())
        if spelling in REFUSED:
            raise QueryError(f"{spelling} is not supported here", self.at, spelling)
        return spelling

    def value(self) -> tuple[str, int]:
        """The value and the position of its text."""
        start = self.at
        if self.text.startswith("{", start):
            value, self.at = read_quoted(self.text, start)
            return value, start + 1
        match = (_VALUE_IN_GROUP if self.depth else _VALUE).match(self.text, start)
        value = match.group() if match else ""
        self.at += len(value)
        return value, start

    def take(self, token: str) -> bool:
        is_present = self.text.startswith(token, self.at)
        if is_present:
            self.at += len(token)
        return is_present

    def error(self, message: str) -> QueryError:
        return QueryError(message, self.at, self.text[self.at : self.at + 12])
