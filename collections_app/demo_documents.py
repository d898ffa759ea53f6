"""Loads the product's own documentation as demo documents for a first search."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db import transaction

from accounts import roles
from accounts.demo import DEMO_PREFIX
from accounts.models import Role, User
from collections_app import embed
from collections_app.documents import storage
from collections_app.models import Collection
from collections_app.queue import leases

COLLECTION_NAME = "Product documentation"


def load_demo_documents() -> bool:
    """Creates the demo collection, unless a collection with this name exists or has ever existed.
    Returns False if the next start must try again.

    Does nothing without demo users or without the documentation, for example in a container image.
    """
    paths = list(documentation_pages(settings.BASE_DIR))
    has_demo_users = User.objects.filter(login__startswith=DEMO_PREFIX).exists()
    if not paths or not has_demo_users or Collection.history.filter(name=COLLECTION_NAME).exists():
        return True
    try:
        space = embed.default_space()
    except embed.EmbeddingUnavailable:
        return False
    with transaction.atomic():
        collection = Collection(name=COLLECTION_NAME, space=space, text_configuration="english")
        # The default model, which needs no memory and time for a second one.
        collection.embedding_model_choice = space.model if embed.chooses_models() else ""
        collection.reader_roles = [Role.objects.get(name=roles.ITIL).pk]
        collection.writer_roles = [Role.objects.get(name=roles.COLLECTION_ADMIN).pk]
        collection.save()
        for path in paths:
            _add_document(collection, path)
    return True


def documentation_pages(root: Path) -> Iterator[Path]:
    readme = root / "README.md"
    if readme.is_file():
        yield readme
    yield from sorted(page for page in (root / "docs").rglob("*.md") if page.parent.name != "decisions")


def _add_document(collection: Collection, path: Path) -> None:
    result = storage.store_document(
        collection=collection,
        data=path.read_bytes(),
        filename=path.name,
        format="markdown",
        metadata={"type": "documentation"},
        doc_id=path.relative_to(settings.BASE_DIR).as_posix(),
        on_duplicate="skip",
        user_id="",
        takes_lease=True,
    )
    assert result.lease_token is not None
    # Leave the document to the sweep. A wake-up message at the first start would expire before a worker runs.
    leases.release_lease(leases.leased_version(result.version.pk, result.lease_token))
