"""Demo documents for a first search: the product's own documentation, which the worker loads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction

from accounts import roles
from accounts.demo import PREFIX
from accounts.models import Role, User
from collections_app import embed
from collections_app.documents import storage
from collections_app.models import Collection
from collections_app.queue import leases

NAME = "Product documentation"


def make() -> None:
    """Once, for the demo people: never where such a collection ever was, ours or an administrator's.

    Without its documentation, as in an image, the product has nothing to show here.
    """
    found = list(pages(settings.BASE_DIR))
    has_people = User.objects.filter(login__startswith=PREFIX).exists()
    if not found or not has_people or Collection.history.filter(name=NAME).exists():
        return
    try:
        space = embed.default_space()
    except embed.EmbeddingUnavailable:
        return  # at the next start
    with transaction.atomic():
        collection = Collection(name=NAME, space=space, text_configuration="english")
        collection.reader_roles = [Role.objects.get(name=roles.ITIL).pk]
        collection.writer_roles = [Role.objects.get(name=roles.COLLECTION_ADMIN).pk]
        collection.save()
        for path in found:
            _add(collection, path)


def pages(root: Path) -> Iterator[Path]:
    """The files that people read; absent ones are no fault."""
    readme = root / "README.md"
    if readme.is_file():
        yield readme
    yield from sorted(page for page in (root / "docs").rglob("*.md") if page.parent.name != "decisions")


def _add(collection: Collection, path: Path) -> None:
    accepted = storage.store_document(
        collection=collection,
        data=path.read_bytes(),
        filename=path.name,
        format="markdown",
        metadata={"type": "documentation"},
        doc_id=path.relative_to(settings.BASE_DIR).as_posix(),
        on_duplicate="skip",
        user_id="",
        is_held=True,
    )
    assert accepted.lease_token is not None
    # Held and let go: the sweeper finds it. The wake-ups of a first start would be stale before there is a worker.
    leases.return_lease(leases.held(accepted.version.pk, accepted.lease_token))
