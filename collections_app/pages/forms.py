"""Forms of the collection pages, to create a collection and to search one."""

from django import forms
from django.http import QueryDict

from collections_app.http import parameters
from collections_app.http.parameters import MAX_K, SEARCH_MODES, RequestParameters
from collections_app.models import Collection
from collections_app.models.collections import MAX_NAME_LENGTH
from collections_app.search.pipeline import SearchRequest, SearchResult, search
from system.errors import ServiceError

DEFAULT_RESULT_COUNT = 5


class NewCollectionForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, help_text="You can choose the readers and writers later, under Settings."
    )


class SearchInput:
    """A search read from the query string. `problem` is the error message for the page."""

    def __init__(self, query_params: QueryDict) -> None:
        self.is_submitted = "query" in query_params
        self.query = query_params.get("query", "").strip()
        self.filter = query_params.get("filter", "").strip()
        mode = query_params.get("mode", "")
        self.mode = mode if mode in SEARCH_MODES else "hybrid"
        k = query_params.get("k", "")
        self.k = min(max(int(k), 1), MAX_K) if k.isascii() and k.isdigit() and len(k) < 5 else DEFAULT_RESULT_COUNT
        self.problem = "" if self.query or not self.is_submitted else "Enter a search query."
        self.status = 400 if self.problem else 200

    @property
    def more_results_url(self) -> str:
        """The URL of the same search with more passages, or an empty string at the maximum."""
        if self.k >= MAX_K:
            return ""
        query = QueryDict(mutable=True)
        query.update({"query": self.query, "filter": self.filter, "mode": self.mode, "k": str(min(self.k * 2, MAX_K))})
        return f"?{query.urlencode()}"

    def search(self, collection: Collection) -> SearchResult | None:
        """Returns the result, or None after an error, which is in `problem`."""
        if self.problem:
            return None
        try:
            request = SearchRequest(
                query=parameters.read_query("query", self.query),
                k=self.k,
                filter=parameters.read_filter(RequestParameters({"filter": [self.filter]}), "filter"),
                mode=self.mode,
            )
            return search([collection], request)
        except ServiceError as error:
            self.problem, self.status = error.message, error.status
        return None
