"""The forms of the pages of collections: a new one, and a search."""

from __future__ import annotations

from django import forms
from django.http import QueryDict

from accounts.models import User
from collections_app import access
from collections_app.http import parameters
from collections_app.http.parameters import MOST_K, RequestParameters
from collections_app.models import Collection
from collections_app.models.collections import LONGEST_NAME
from collections_app.search.pipeline import SearchRequest, SearchResult, search
from system.errors import AccessDenied, Conflict, ServiceError

MODES = (("hybrid", "words and meaning"), ("text", "words"), ("vector", "meaning"))
STEP = 5
EMPTY = "Enter a search query."


class NewCollectionForm(forms.Form):
    name = forms.CharField(
        max_length=LONGEST_NAME, help_text="You can set read and write access later, under Settings."
    )

    def make(self, user: User) -> Collection:
        name = access.checked_name(self.cleaned_data["name"])
        if not access.may_make(user):
            raise AccessDenied("You are not allowed to create collections.")
        if access.readable(user).filter(name=name).exists():
            raise Conflict("A collection with this name already exists.")
        return access.make(user, Collection(name=name))


class SearchForm:
    """A search as it stands in the address; what is wrong with it is said, not thrown."""

    def __init__(self, asked: QueryDict) -> None:
        self.is_asked = "query" in asked
        self.query = asked.get("query", "").strip()
        self.filter = asked.get("filter", "").strip()
        given = asked.get("mode", "")
        self.mode = given if given in dict(MODES) else MODES[0][0]
        k = asked.get("k", "")
        self.k = min(max(int(k), 1), MOST_K) if k.isascii() and k.isdigit() and len(k) < 5 else STEP
        self.problem = "" if self.query or not self.is_asked else EMPTY
        self.status = 400 if self.problem else 200

    @property
    def more_address(self) -> str:
        """The same search with more passages; empty when there are no more to be had."""
        if self.k >= MOST_K:
            return ""
        made = QueryDict(mutable=True)
        made.update({"query": self.query, "filter": self.filter, "mode": self.mode, "k": str(min(self.k * 2, MOST_K))})
        return f"?{made.urlencode()}"

    def search(self, collection: Collection) -> SearchResult | None:
        """What was found; None when something is wrong, which `problem` says then."""
        if self.problem:
            return None
        try:
            asked = SearchRequest(
                query=parameters.query("query", self.query),
                k=self.k,
                filter=parameters.filter_in(RequestParameters({"filter": [self.filter]}), "filter"),
                mode=self.mode,
            )
            return search([collection], asked)
        except ServiceError as error:
            self.problem, self.status = error.message, error.status
        return None
