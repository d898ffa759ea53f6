"""Encoded queries as trees of JSON, which the condition builder edits, and back as text. Pure.

    Tree    {"groups": [Group, …], "order": [{"path": "name", "is_descending": false}, …]}    one group matches (^NQ)
    Group   [Term, …]      every term matches (^)
    Term    [Factor, …]    one factor matches (^OR)
    Factor  {"path": "caller.name", "operator": "LIKE", "value": "x"}  or, in parentheses,  {"groups": [Group, …]}

`query-text.js` writes the same text in the browser.
"""

from functools import lru_cache
from typing import Any

from system.encoded_query import ALIASES, OPERATORS, REFUSED_OPERATORS, Condition, Group, SubQuery, parse
from workspace.forms.parameters import quoted_value

JsonObject = dict[str, Any]
JsonGroup = list[list[JsonObject]]

SPELLINGS = (*OPERATORS, *ALIASES, *REFUSED_OPERATORS)


@lru_cache(maxsize=64)  # a page parses its query several times; callers do not change the tree
def parse_tree(text: str) -> JsonObject:
    """The tree of a query; raises QueryError if it is invalid.

    >>> parse_tree("active=true^ORDERBYname")["order"]
    [{'path': 'name', 'is_descending': False}]
    """
    query = parse(text)
    order = [{"path": ".".join(key.path), "is_descending": key.is_descending} for key in query.order]
    return {"groups": [_group_tree(group) for group in query.groups], "order": order}


def _group_tree(group: Group) -> JsonGroup:
    return [[_factor_tree(factor) for factor in term.factors] for term in group.terms]


def _factor_tree(factor: Condition | SubQuery) -> JsonObject:
    if isinstance(factor, SubQuery):
        return {"groups": [_group_tree(group) for group in factor.groups]}
    return {"path": ".".join(factor.path), "operator": factor.operator, "value": factor.value}


def to_text(tree: JsonObject) -> str:
    """The text of a tree: `parse_tree(to_text(tree)) == tree` for every tree of a query.

    >>> to_text(parse_tree("nameCONTAINSa^(b=^ORc={x)})^ORDERBYd^EQ"))
    'nameLIKEa^(bISEMPTY^ORc={x)})^ORDERBYd'
    """
    conditions = [_groups_text(tree["groups"], is_inside=False)] if tree["groups"] else []
    order = [("ORDERBYDESC" if key["is_descending"] else "ORDERBY") + key["path"] for key in tree["order"]]
    return "^".join([*conditions, *order])


def _groups_text(groups: list[JsonGroup], *, is_inside: bool) -> str:
    return "^NQ".join(
        "^".join("^OR".join(_factor_text(factor, is_inside) for factor in term) for term in group) for group in groups
    )


def _factor_text(factor: JsonObject, is_inside: bool) -> str:
    if "groups" in factor:
        return f"({_groups_text(factor['groups'], is_inside=True)})"
    path, operator, value = (str(factor[name]) for name in ("path", "operator", "value"))
    return path + operator + (quoted_value(value) if _needs_quotes(operator, value, is_inside) else value)


def _needs_quotes(operator: str, value: str, is_inside: bool) -> bool:
    """Whether the bare value would end early, open a quotation, or be read as part of a longer operator.

    >>> _needs_quotes("IN", "STANCEOFx", False), _needs_quotes("=", "a)", False), _needs_quotes("=", "a)", True)
    (True, False, True)
    """
    if "^" in value or value.startswith("{") or (is_inside and ")" in value):
        return True
    return any(len(name) > len(operator) and (operator + value).startswith(name) for name in SPELLINGS)


def without_order(text: str) -> str:
    """
    >>> without_order("a=1^ORDERBYb")
    'a=1'
    """
    return to_text(parse_tree(text) | {"order": []})


def with_condition(text: str, condition: str) -> str:
    """The query for records that match both; the order stays.

    >>> with_condition("a=1^NQb=2^ORDERBYc", "d=4"), with_condition("a=1", "b=2^NQc=3"), with_condition("", "a=1")
    ('(a=1^NQb=2)^d=4^ORDERBYc', 'a=1^(b=2^NQc=3)', 'a=1')
    """
    tree = parse_tree(text)
    terms = [*_as_terms(tree["groups"]), *_as_terms(parse_tree(condition)["groups"])]
    return to_text(tree | {"groups": [terms] if terms else []})


def _as_terms(groups: list[JsonGroup]) -> JsonGroup:
    return [[{"groups": groups}]] if len(groups) > 1 else [*groups[0]] if groups else []


def without_part(tree: JsonObject, group_index: int, term_index: int | None = None) -> JsonObject:
    """The tree without a term or, without an index of a term, without the group.

    >>> to_text(without_part(parse_tree("a=1^b=2^NQc=3"), 0, 1)), to_text(without_part(parse_tree("a=1^NQb=2"), 0))
    ('a=1^NQc=3', 'b=2')
    """
    groups = [*tree["groups"]]
    group = groups.pop(group_index)
    if term_index is not None and len(group) > 1:
        groups.insert(group_index, [*group[:term_index], *group[term_index + 1 :]])
    return tree | {"groups": groups}
