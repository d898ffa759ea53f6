"""The box of document collections on the dashboard."""

from datetime import timedelta

from django.db.models import Min
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils import timezone
from django.utils.timesince import timesince

from collections_app import access
from collections_app.documents import counts
from collections_app.models import Version
from collections_app.models.documents import UNFINISHED
from system.admin_site import dashboard

# Loading takes seconds. Chosen: who waits longer than this waits for something that is broken.
TOO_LONG = timedelta(minutes=15)


@dashboard.tile(order=30)
def documents(request: HttpRequest) -> dashboard.Tile | None:
    """How many documents are ready, empty, in work and failed, of the collections that this person may read."""
    user = request.user
    if not user.is_authenticated or not user.has_module_perms("collections_app"):
        return None
    ids = list(access.readable(user).values_list("pk", flat=True))
    found = counts.together(list(counts.of(ids).values()))
    in_work = Version.objects.filter(collection__in=ids, document__deleted_at__isnull=True, state__in=UNFINISHED)
    oldest = in_work.aggregate(Min("created_at"))["created_at__min"]
    is_late = oldest is not None and timezone.now() - oldest > TOO_LONG
    failed = "" if found.failed else ", 0 failed"
    where = f"in {len(ids)} collection{pluralize(len(ids))}."
    about = f"document{pluralize(found.ready)} ready, {found.empty} empty, {found.unfinished} in work{failed}, {where}"
    worries = [f"{found.failed} failed."] if found.failed else []
    if is_late:
        worries.append(f"The oldest has waited for {timesince(oldest)}.")
    address = dashboard.Link("", "", "collections_app.Document").address + ("?state=failed" if found.failed else "")
    return dashboard.Tile("Documents", str(found.ready), about, address, "folder_open", worries=" ".join(worries))
