"""The pages that search one collection, or several at once."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from collections_app import access
from collections_app.documents import counts
from collections_app.http.parameters import MAX_COLLECTIONS, SEARCH_MODES
from collections_app.models import Collection
from collections_app.pages import presenters
from collections_app.pages.filter_rows import OPERATOR_LABELS
from collections_app.pages.forms import SearchInput
from collections_app.pages.views import CollectionPage
from collections_app.search.known_metadata import known_fields

NO_COLLECTIONS = "Choose at least one collection that you can read."


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
        hits, weak_hits = presenters.hit_contexts(result.hits) if result else ([], [])
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
