"""Forms of the collection pages: create a collection, search, and change settings and permissions."""

from functools import partial
from typing import Any

from django import forms
from django.http import QueryDict

from accounts.admin.roles import RoleMultipleChoiceField
from accounts.models import Role
from collections_app.http import parameters
from collections_app.http.api.serializers import check_language
from collections_app.http.parameters import MAX_K, SEARCH_MODES, RequestParameters
from collections_app.models import Collection
from collections_app.models.collections import MAX_NAME_LENGTH, InvalidName, check_visible_characters, normalize_name
from collections_app.pages.filter_rows import FilterRow, split_filter, submitted_filter
from collections_app.search.pipeline import SearchRequest, SearchResult, search
from system.errors import ServiceError

DEFAULT_RESULT_COUNT = 5
# PostgreSQL's text search configurations. `check_language` verifies that the server has the selected one.
TEXT_CONFIGURATIONS = (
    "simple arabic armenian basque catalan danish dutch english estonian finnish french german greek hindi hungarian "
    "indonesian irish italian lithuanian nepali norwegian portuguese romanian russian serbian spanish swedish tamil "
    "turkish yiddish"
)
LANGUAGE_HELP = "Language for keyword search in new and reprocessed documents. Leave empty to detect it per document."
NAME_TAKEN = "A collection with this name already exists."


class NewCollectionForm(forms.Form):
    name = forms.CharField(
        max_length=MAX_NAME_LENGTH, help_text="You can choose the readers and writers later, under Access."
    )


class AccessForm(forms.ModelForm):  # type: ignore[type-arg]
    role_field = partial(
        RoleMultipleChoiceField, queryset=Role.objects.all(), required=False, widget=forms.CheckboxSelectMultiple
    )
    reader_roles = role_field(
        label="Readers",
        help_text="Roles that can search this collection, in addition to writers. Leave empty for writers only.",
    )
    writer_roles = role_field(
        label="Writers", help_text="Roles that can add and delete documents. Leave empty for collection_admin only."
    )

    class Meta:
        model = Collection
        fields = ("reader_roles", "writer_roles")


class SettingsForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Collection
        fields = ("name", "text_configuration", "chunk_size", "chunk_overlap", "alpha")
        labels = {"alpha": "Keyword weight"}
        help_texts = {
            "text_configuration": LANGUAGE_HELP,
            "chunk_size": "Maximum number of characters per passage, for new and reprocessed documents.",
            "chunk_overlap": "Number of characters repeated from the previous passage. At most half of the chunk size.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        configurations = dict.fromkeys((*TEXT_CONFIGURATIONS.split(), self.instance.text_configuration))
        choices = [("", "Detect automatically"), *((name, name) for name in configurations if name)]
        self.fields["text_configuration"].widget = forms.Select(choices=choices)

    def clean_name(self) -> str:
        try:
            name = normalize_name(self.cleaned_data["name"])
            if name != self.initial.get("name"):
                check_visible_characters(name)
        except InvalidName as error:
            raise forms.ValidationError(error.message) from None
        if Collection.objects.filter(name=name, deleted_at__isnull=True).exclude(pk=self.instance.pk).exists():
            raise forms.ValidationError(NAME_TAKEN)
        return name

    def clean_text_configuration(self) -> str:
        return check_language(self.cleaned_data["text_configuration"])


class SearchInput:
    """A search read from the query string. `problem` is the error message for the page."""

    def __init__(self, query_params: QueryDict) -> None:
        self.query_params = query_params
        self.is_submitted = "query" in query_params
        self.query = query_params.get("query", "").strip()
        self.filter = submitted_filter(query_params)
        mode = query_params.get("mode", "")
        self.mode = mode if mode in SEARCH_MODES else "hybrid"
        k = query_params.get("k", "")
        self.k = min(max(int(k), 1), MAX_K) if k.isascii() and k.isdigit() and len(k) < 5 else DEFAULT_RESULT_COUNT
        self.problem = "" if self.query or not self.is_submitted else "Enter a search query."
        self.status = 400 if self.problem else 200

    def url(self, **changes: str) -> str:
        """The URL of this search, in which the rows of the filter have become its text."""
        query = QueryDict(mutable=True)
        query.setlist("in", self.query_params.getlist("in"))
        query.update({"query": self.query, "filter": self.filter, "mode": self.mode, "k": str(self.k)} | changes)
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
            )
            return search(collections, request)
        except ServiceError as error:
            self.problem, self.status = error.message, error.status
        return None
