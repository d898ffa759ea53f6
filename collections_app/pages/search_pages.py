"""The pages that search one collection, or several at once."""

import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from collections_app import access
from collections_app.documents import counts
from collections_app.http import parameters
from collections_app.http.parameters import MAX_COLLECTIONS, MAX_K, SEARCH_MODES, RequestParameters
from collections_app.models import Collection
from collections_app.pages import presenters
from collections_app.pages.views import CollectionPage
from collections_app.search.arrangement import Arrangement
from collections_app.search.known_metadata import known_fields
from collections_app.search.pipeline import SearchRequest, SearchResult, search
from system.encoded_query import METADATA, Condition, QueryError, parse
from system.errors import ServiceError

NO_COLLECTIONS = "Choose at least one collection that you can read."
DEFAULT_RESULT_COUNT = 5
# In the order in which the page offers them.
OPERATOR_LABELS = {
    "=": "is", "!=": "is not", "LIKE": "contains", "<": "is less than", ">": "is greater than", "<=": "is at most",
    ">=": "is at least", "ISEMPTY": "is empty", "ISNOTEMPTY": "is not empty",
}  # fmt: skip
BARE_NAME = re.compile("[a-z_][a-z0-9_]*")
BARE_VALUE = re.compile(r"\w[\w -]*")


@dataclass(frozen=True, slots=True)
class FilterRow:
    key: str = ""
    operator: str = "="
    value: str = ""

    @property
    def text(self) -> str:
        """The condition in the query language.

        >>> FilterRow("type", "=", "manual").text, FilterRow("Room}", "LIKE", "a^b").text
        ('type=manual', '{Room}}}LIKE{a^b}')
        """
        value = "" if self.operator in ("ISEMPTY", "ISNOTEMPTY") else self.value
        return _quote(self.key, BARE_NAME) + self.operator + (_quote(value, BARE_VALUE) if value else "")


def _quote(text: str, bare: re.Pattern[str]) -> str:
    return text if bare.fullmatch(text) else "{" + text.replace("}", "}}") + "}"


def submitted_filter(query_params: QueryDict) -> str:
    """Returns the filter of a form: its rows and its advanced text, joined by "and"."""
    columns = (query_params.getlist(name) for name in ("key", "operator", "value"))
    rows = [
        FilterRow(key, operator if operator in OPERATOR_LABELS else "=", value.strip())
        for key, operator, value in zip(*columns, strict=False)
        if key
    ]
    advanced = query_params.get("filter", "").strip()
    if rows and "^NQ" in advanced:
        advanced = f"({advanced})"
    return "^".join([*(row.text for row in rows), *filter(None, [advanced])])


def split_filter(text: str) -> tuple[list[FilterRow], str]:
    """Returns the rows of a filter and, if rows cannot express it, its text instead.

    >>> split_filter("type=manual^priority<3")[0]
    [FilterRow(key='type', operator='=', value='manual'), FilterRow(key='priority', operator='<', value='3')]
    >>> split_filter("type=a^ORtype=b"), split_filter("type = a")
    (([], 'type=a^ORtype=b'), ([], 'type = a'))
    """
    try:
        query = parse(text, METADATA)
    except QueryError:
        return [], text
    rows = []
    terms = query.groups[0].terms if len(query.groups) == 1 and not query.order else ()
    for factors in (term.factors for term in terms):
        condition = factors[0]
        is_row = len(factors) == 1 and isinstance(condition, Condition) and len(condition.path) == 1
        if not is_row or not isinstance(condition, Condition) or condition.operator not in OPERATOR_LABELS:
            return [], text
        rows.append(FilterRow(condition.path[0], condition.operator, condition.value))
    return rows, "" if rows else text


class SearchInput:
    """A search read from the query string. `problem` is the error message for the page."""

    def __init__(self, query_params: QueryDict) -> None:
        self.query_params = query_params
        self.is_submitted = "query" in query_params
        self.query = query_params.get("query", "").strip()
        self.filter = submitted_filter(query_params)
        mode = query_params.get("mode", "")
        self.mode = mode if mode in SEARCH_MODES else "hybrid"
        self.group_by = "document" if query_params.get("group_by") == "document" else ""
        k = query_params.get("k", "")
        self.k = min(max(int(k), 1), MAX_K) if k.isascii() and k.isdigit() and len(k) < 5 else DEFAULT_RESULT_COUNT
        self.problem = "" if self.query or not self.is_submitted else "Enter a search query."
        self.status = 400 if self.problem else 200

    def url(self, **changes: str) -> str:
        """The URL of this search, in which the rows of the filter have become its text."""
        query = QueryDict(mutable=True)
        query.setlist("in", self.query_params.getlist("in"))
        options = {"filter": self.filter, "mode": self.mode, "group_by": self.group_by, "k": str(self.k)}
        query.update({"query": self.query, **options, **changes})
        return f"?{query.urlencode()}"

    @property
    def more_results_url(self) -> str:
        """The URL of the same search with more passages, or an empty string at the maximum."""
        return "" if self.k >= MAX_K else self.url(k=str(min(self.k * 2, MAX_K)))

    def context(self, known_fields: dict[str, list[str]]) -> dict[str, Any]:
        """The context of the filter's rows, with an empty one for a further condition."""
        rows, advanced_filter = split_filter(self.filter)
        names = list(dict.fromkeys([*known_fields, *(row.key for row in rows)]))
        return {
            "filter_rows": [*rows, FilterRow()],
            "advanced_filter": advanced_filter,
            "field_names": names,
            "known_fields": known_fields.items(),
        }

    def search(self, collections: list[Collection]) -> SearchResult | None:
        """Returns the result, or None after an error, which is in `problem`."""
        if self.problem:
            return None
        try:
            request = SearchRequest(
                query=parameters.read_query("query", self.query),
                k=self.k,
                filter=parameters.read_filter(RequestParameters({"filter": [self.filter]}), "filter"),
                mode=self.mode,
                # Two files can have the same text, which is then also the same result.
                arrangement=Arrangement(by_document=bool(self.group_by), collapses_copies=bool(self.group_by)),
            )
            return search(collections, request)
        except ServiceError as error:
            self.problem, self.status = error.message, error.status
        return None


class SearchPage(CollectionPage):
    """`/collections/{sys_id}/`: searches a collection."""

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "read")
        context = self.tab_context(collection, "search")
        return self.respond([collection], SearchInput(request.GET), "search", context)

    def respond(
        self, collections: list[Collection], form: SearchInput, template: str, context: dict[str, Any]
    ) -> HttpResponse:
        if "key" in self.request.GET:
            # The URL that people share contains the filter as one text.
            return redirect(self.request.path + form.url())
        result = form.search(collections) if form.is_submitted else None
        hits, weak_hits = presenters.hit_contexts(result.hits, self.request.get_full_path()) if result else ([], [])
        collection_ids = [collection.pk for collection in collections]
        counts_by_id = counts.count_by_collection(collection_ids)
        context |= form.context(known_fields(collection_ids)) | {
            "form": form,
            "has_result": result is not None,
            "hits": hits,
            "weak_hits": weak_hits,
            "weak_percent": round(100 * presenters.WEAK_SCORE_SHARE),
            "has_no_keyword_match": result is not None and all(hit.scores["text"] == 0 for hit in result.hits),
            "is_without_vectors": result is not None and result.is_without_vectors,
            "more_results_url": form.more_results_url if result is not None and len(result.hits) == form.k else "",
            "document_count": sum(counts_by_id[key].document_count for key in collection_ids),
            "unfinished_count": sum(counts_by_id[key].unfinished_count for key in collection_ids),
            "modes": SEARCH_MODES.items(),
            "operators": OPERATOR_LABELS.items(),
        }
        return render(self.request, f"collections/{template}.html", context, status=form.status)


class SearchAllPage(SearchPage):
    """`/collections/search/`: searches the chosen ones of the collections that the user can read."""

    def get(self, request: HttpRequest) -> HttpResponse:  # type: ignore[override]  # no collection in the URL
        readable = access.readable_collections(self.user())
        offered = list(readable[: MAX_COLLECTIONS + 1])
        is_limited, offered = len(offered) > MAX_COLLECTIONS, offered[:MAX_COLLECTIONS]
        chosen = offered
        if "in" in request.GET:
            # Ids of other collections are ignored, whether they exist or not.
            chosen = list(readable.filter(pk__in=request.GET.getlist("in"))[:MAX_COLLECTIONS])
        form = SearchInput(request.GET)
        if form.is_submitted and not form.problem and not chosen:
            form.problem, form.status = NO_COLLECTIONS, 400
        chosen_ids = {collection.pk for collection in chosen}
        choices = list(dict.fromkeys([*offered, *chosen]))
        context = {
            "choices": [(collection, collection.pk in chosen_ids) for collection in choices],
            "is_limited": is_limited,
            "max_collections": MAX_COLLECTIONS,
            "names_collections": True,
        }
        return self.respond(chosen, form, "search_all", context)
