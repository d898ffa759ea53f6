"""Writes a parsed query as canonical text; parsing the text gives the same query."""

from system.encoded_query import RECORDS, Condition, Dialect, Group, OrderBy, Path, Query, SubQuery, Term
from system.encoded_query.operators import match_operator


def to_text(query: Query, dialect: Dialect = RECORDS) -> str:
    """The canonical text: `parse(to_text(query)) == query` for every query that `parse` can give.

    >>> from system.encoded_query import parse
    >>> to_text(parse("nameCONTAINSa^(b=^ORc={x)})^ORDERBYd^EQ"))
    'nameLIKEa^(bISEMPTY^ORc={x)})^ORDERBYd'
    """
    return _Printer(dialect).query_text(query)


class _Printer:
    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def query_text(self, query: Query) -> str:
        order_clauses = [self.order_text(sort_key) for sort_key in query.order]
        return "^".join(
            [self.groups_text(query.groups, is_inside=False), *order_clauses] if query.groups else order_clauses
        )

    def groups_text(self, groups: tuple[Group, ...], *, is_inside: bool) -> str:
        return "^NQ".join("^".join(self.term_text(term, is_inside) for term in group.terms) for group in groups)

    def term_text(self, term: Term, is_inside: bool) -> str:
        return "^OR".join(self.factor_text(factor, is_inside) for factor in term.factors)

    def factor_text(self, factor: Condition | SubQuery, is_inside: bool) -> str:
        if isinstance(factor, SubQuery):
            return f"({self.groups_text(factor.groups, is_inside=True)})"
        operator, value = factor.operator, factor.value
        if _needs_quotes(operator, value, is_inside):
            value = quote(value)
        return self.path_text(factor.path, operator) + operator + value

    def order_text(self, sort_key: OrderBy) -> str:
        return ("ORDERBYDESC" if sort_key.is_descending else "ORDERBY") + self.path_text(sort_key.path, "")

    def path_text(self, path: Path, operator: str) -> str:
        next_texts = ["."] * (len(path) - 1) + [operator]
        return ".".join(self.name_text(name, next_text) for name, next_text in zip(path, next_texts, strict=True))

    def name_text(self, name: str, next_text: str) -> str:
        match = self.dialect.name_pattern.match(name + next_text)
        if match and match.group() == name:
            return name
        if not self.dialect.allows_quoted_names or not name:
            raise ValueError(f"not a valid field name of this dialect: {name!r}")
        return quote(name)


def quote(text: str) -> str:
    """The text in braces.

    >>> quote("a^{b}")
    '{a^{b}}}'
    """
    return "{" + text.replace("}", "}}") + "}"


def _needs_quotes(operator: str, value: str, is_inside: bool) -> bool:
    """Whether the bare value would end early, open a quotation, or be read as part of a longer operator.

    >>> _needs_quotes("IN", "STANCEOFx", False), _needs_quotes("=", "a)", False), _needs_quotes("=", "a)", True)
    (True, False, True)
    """
    return (
        "^" in value
        or value.startswith("{")
        or (is_inside and ")" in value)
        or match_operator(operator + value) != operator
    )
