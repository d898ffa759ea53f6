"""The quick search: its words are one term of the query. Pure."""

from dataclasses import dataclass

from tableapi.access.caller_view import CallerView
from tableapi.catalogue.definitions import NUMBER_COLUMN, Column, Table
from workspace.forms.parameters import quoted_value

from . import query_tree

MAX_SEARCH_LABELS = 3


@dataclass(frozen=True)
class Search:
    """The columns that the quick search of a table searches, and the condition with which it searches them."""

    columns: tuple[Column, ...]
    # Paths and operators, any of which may match. A table without them cannot be searched.
    operators: tuple[tuple[str, str], ...]

    @property
    def hint(self) -> str:
        return ", ".join(column.label or column.name for column in self.columns[:MAX_SEARCH_LABELS])


def search_of(view: CallerView, table: Table) -> Search:
    """Searches the words of searchable text, and the beginning of the number and the display value. If the caller can
    see no searchable text, the latter contain the words."""
    visible = [column for column in table.columns.values() if view.column(table, column.name)]
    texts = [column for column in visible if column.column_type.is_text]
    has_ids = view.column(table, "sys_id") is not None
    words = [column for column in texts if column.is_indexed and has_ids]
    names = [column for column in texts if column in (table.columns.get(NUMBER_COLUMN), table.display_column)]
    names = [column for column in names if column not in words]
    operators = [(column.name, "STARTSWITH" if words else "LIKE") for column in names]
    return Search((*names, *words), tuple([("sys_id", "ARE"), *operators] if words else operators))


def searched_words(search: Search, query: str) -> str:
    """The words that the query searches for; empty without a search.

    >>> search = Search((), (("sys_id", "ARE"), ("name", "STARTSWITH")))
    >>> searched_words(search, "state=1^sys_idAREmail server^ORnameSTARTSWITHmail server")
    'mail server'
    """
    return next((term[0]["value"] for term in _search_terms(search, query_tree.parse_tree(query))), "")


def with_search(search: Search, query: str, words: str) -> str:
    """The query with these words in place of those it searched for. Punctuation alone is not a word.

    >>> with_search(Search((), (("sys_id", "ARE"),)), "sys_idAREa^b=1^ORDERBYc", "x y")
    'b=1^sys_idAREx y^ORDERBYc'
    """
    tree = query_tree.parse_tree(query)
    terms = _search_terms(search, tree)
    groups = [[term for term in group if term not in terms] for group in tree["groups"]]
    rest = query_tree.to_text(tree | {"groups": [group for group in groups if group]})
    term = "^OR".join(f"{path}{operator}{quoted_value(words)}" for path, operator in search.operators)
    return query_tree.with_condition(rest, term) if any(map(str.isalnum, words)) else rest


def _search_terms(search: Search, tree: query_tree.JsonObject) -> query_tree.JsonGroup:
    """The terms that consist of a search only. With ^NQ, each group has conditions of its own."""
    return [
        term
        for term in (tree["groups"][0] if len(tree["groups"]) == 1 else [])
        if tuple((factor.get("path"), factor.get("operator")) for factor in term) == search.operators
        and len({factor["value"] for factor in term}) == 1
    ]
