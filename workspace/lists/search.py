"""The quick search: its words are one condition of the query. Pure."""

from collections.abc import Iterator

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import Column, Table
from workspace.forms.parameters import quoted_value

from . import query_tree

Term = list[query_tree.JsonObject]


def searched_columns(view: CallerView, table: Table) -> list[Column]:
    """The columns with searchable text that the caller can see; without them, the display column; or none."""
    words = [column for column in table.columns.values() if column.column_type.is_text and column.is_indexed]
    columns = [column for column in words if view.column(table, column.name)] if view.column(table, "sys_id") else []
    display = table.display_column
    if not columns and display is not None and display.column_type.is_text and view.column(table, display.name):
        return [display]
    return columns


def search_operator(view: CallerView, table: Table) -> tuple[str, str] | None:
    """The column and operator of the search: words of searchable text or, without such text, of the display value."""
    columns = searched_columns(view, table)
    if not columns:
        return None
    return ("sys_id", "ARE") if columns[0].is_indexed and view.column(table, "sys_id") else (columns[0].name, "LIKE")


def searched_words(search: tuple[str, str] | None, query: str) -> str:
    """The words that the query searches for; empty without a search.

    >>> searched_words(("sys_id", "ARE"), "state=1^sys_idAREmail server")
    'mail server'
    """
    return next((str(term[0]["value"]) for term in _search_terms(search, query_tree.parse_tree(query))), "")


def with_search(search: tuple[str, str], query: str, words: str) -> str:
    """The query with these words in place of those it searched for.

    >>> with_search(("sys_id", "ARE"), "sys_idAREa^b=1^ORDERBYc", "x y"), with_search(("name", "LIKE"), "nameLIKEa", "")
    ('b=1^sys_idAREx y^ORDERBYc', '')
    """
    tree = query_tree.parse_tree(query)
    terms = _search_terms(search, tree)
    groups = [[term for term in group if term not in terms] for group in tree["groups"]]
    rest = query_tree.to_text(tree | {"groups": [group for group in groups if group]})
    # Punctuation alone is not a word for ARE.
    has_words = any(map(str.isalnum, words)) if search[1] == "ARE" else bool(words)
    return query_tree.with_condition(rest, f"{search[0]}{search[1]}{quoted_value(words)}") if has_words else rest


def _search_terms(search: tuple[str, str] | None, tree: query_tree.JsonObject) -> list[Term]:
    return list(_find_terms(search, tree)) if search else []


def _find_terms(search: tuple[str, str], tree: query_tree.JsonObject) -> Iterator[Term]:
    """The terms that consist of a search only. With ^NQ, each group has conditions of its own."""
    if len(tree["groups"]) == 1:
        for term in tree["groups"][0]:
            if len(term) == 1 and (term[0].get("path"), term[0].get("operator")) == search:
                yield term
