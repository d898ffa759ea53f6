"""Checks and stores a new source. The caller has checked that the user may manage the collection."""

from django.db import IntegrityError, transaction

from collections_app.documents import deletion
from collections_app.models import Collection, Source
from collections_app.models.collections import MAX_NAME_LENGTH, normalize_name
from collections_app.queue import worker_signals
from collections_app.sources import folder, web_page
from system import outbound
from system.errors import Conflict, InvalidParameter, NotFound
from system.outbound import OutboundError

MAX_SOURCES = 100
PAGE_EXISTS = "The collection already has a web page with this document ID."
FOLDER_EXISTS = "The collection already watches a folder."


def create_source(collection: Collection, source: Source) -> Source:
    """Stores the source, which is loaded soon afterwards."""
    source.collection = collection
    if source.kind == Source.Kind.PAGE:
        _check_page(source)
    elif source.doc_id:
        raise InvalidParameter("Only web pages have a document ID.", field="doc_id")
    else:
        source.address = folder.check_path(source.address)
    try:
        with transaction.atomic():
            if not deletion.lock_against_deletion(collection):
                raise NotFound("The collection does not exist.")
            if collection.sources.count() >= MAX_SOURCES:
                raise Conflict(f"A collection can have at most {MAX_SOURCES} sources.", code="too_many_sources")
            source.save()
    except IntegrityError:
        is_page = source.kind == Source.Kind.PAGE
        field = "doc_id" if is_page else "kind"
        raise Conflict(PAGE_EXISTS if is_page else FOLDER_EXISTS, code="duplicate", field=field) from None
    transaction.on_commit(worker_signals.request_refresh, robust=True)
    return source


def _check_page(source: Source) -> None:
    try:
        url = outbound.check_url(web_page.percent_encode(source.address), web_page.policy(), allow_query=True)
    except OutboundError as error:
        raise InvalidParameter(web_page.describe_error(error), field="address") from None
    source.address = str(url)
    # Without the query, which can contain a secret: users who search see the ID.
    default_id = f"{url.authority}{url.path}".rstrip("/")[:MAX_NAME_LENGTH]
    source.doc_id = normalize_name(source.doc_id or default_id, "doc_id")


def find_source(collection: Collection, sys_id: str) -> Source:
    source = Source.objects.filter(collection=collection, pk=sys_id).first()
    if source is None:
        raise NotFound("The source does not exist.")
    return source
