"""Admin pages of document collections, their dashboard tile, and their entry on the start page."""

from collections import Counter
from datetime import timedelta

from django.db.models import Min
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.utils import timezone
from django.utils.timesince import timesince

from collections_app import access
from collections_app.admin import collections, documents, sources  # noqa: F401  (each registers its pages)
from collections_app.documents import counts
from collections_app.models import Collection, Document, Source, Version
from collections_app.models.documents import UNFINISHED_STATES, VersionState
from system.admin_site import dashboard
from system.background import hourly_counts
from system.http import start_page

# Processing takes seconds. A document that waits longer than this indicates a fault.
MAX_QUEUE_AGE = timedelta(minutes=15)

dashboard.register_links(
    "Document collections",
    30,
    dashboard.Link("Collections", "folder_open", "collections_app.Collection"),
    dashboard.Link("Documents", "description", "collections_app.Document"),
    dashboard.Link("Sources", "sync", "collections_app.Source"),
)


@start_page.register_entry
def collections_entry(request: HttpRequest) -> start_page.StartPageEntry | None:
    return start_page.StartPageEntry("Collections", "Search documents and add your own.", reverse("collections"), 20)


@hourly_counts.QUEUE_LENGTHS.register
def queue_length() -> int:
    return Version.objects.filter(state__in=UNFINISHED_STATES).count()


@dashboard.register_step(order=50, app="collections_app")
def collection_step() -> dashboard.Step:
    is_done = Collection.objects.filter(deleted_at__isnull=True).exists()
    return dashboard.Step("Create a document collection", reverse("collections"), is_done)


@dashboard.register_step(order=60, app="collections_app")
def document_step() -> dashboard.Step:
    is_done = Document.objects.filter(deleted_at__isnull=True).exists()
    return dashboard.Step("Load the first document", reverse("collections"), is_done)


@dashboard.register_tile(order=30)
def document_tile(request: HttpRequest) -> dashboard.Tile | None:
    user = request.user
    if not user.is_authenticated or not user.has_module_perms("collections_app"):
        return None
    ids = list(access.readable_collections(user).values_list("pk", flat=True))
    counts_by_collection = counts.count_by_collection(ids)
    by_state = sum((collection_counts.by_state for collection_counts in counts_by_collection.values()), Counter[str]())
    totals = counts.DocumentCounts(by_state=by_state)
    unfinished_versions = Version.objects.filter(
        collection__in=ids, document__deleted_at__isnull=True, state__in=UNFINISHED_STATES
    )
    oldest_created_at = unfinished_versions.aggregate(Min("created_at"))["created_at__min"]
    is_overdue = oldest_created_at is not None and timezone.now() - oldest_created_at > MAX_QUEUE_AGE
    ready, empty = (by_state[state] for state in (VersionState.READY, VersionState.EMPTY))
    failed_text = "" if totals.failed_count else ", 0 failed"
    states_text = f"ready, {empty} empty, {totals.unfinished_count} in progress{failed_text}"
    caption = f"document{pluralize(ready)} {states_text}, in {len(ids)} collection{pluralize(len(ids))}."
    warnings = [f"{totals.failed_count} failed."] if totals.failed_count else []
    if is_overdue:
        warnings.append(f"The oldest queued document has been waiting for {timesince(oldest_created_at)}.")
    failing_count = Source.objects.filter(collection__in=access.managed_collections(user)).exclude(error="").count()
    if failing_count:
        warnings.append(f"{failing_count} source{pluralize(failing_count)} cannot be refreshed.")
    url = reverse("admin:collections_app_document_changelist") + ("?state=failed" if totals.failed_count else "")
    if failing_count and not totals.failed_count:
        url = reverse("admin:collections_app_source_changelist")
    return dashboard.Tile("Documents", str(ready), caption, url, "folder_open", warnings=" ".join(warnings))
