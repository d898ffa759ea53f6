"""The demo collection: the product's own documentation, created once and readable by the demo agent."""

from pathlib import Path
from typing import Any

import pytest

from accounts import demo as demo_users
from accounts.models import Role, User
from collections_app import access, demo_documents
from collections_app.ingest import worker
from collections_app.metadata.filter import parse_filter
from collections_app.models import Collection, Document, Version
from collections_app.queue import leases
from collections_app.search import pipeline
from collections_app.search.pipeline import SearchRequest
from config.env import ROOT
from tests.support.users import PASSWORD, make_user

pytestmark = pytest.mark.django_db

PAGES_BY_QUESTION = {
    "How do I take a backup and restore it?": "docs/how-to/backup.md",
    "set up a Keycloak connection": "docs/how-to/connect-a-provider.md",
    "who may read a column": "docs/how-to/write-access-rules.md",
    "encoded query operators for dates": "docs/reference/encoded-queries.md",
    "create a record with POST": "docs/reference/table-api.md",
}


def create_demo_collection() -> None:
    demo_users.create_demo_users(lambda: PASSWORD)
    demo_documents.load_demo_documents()


def process_demo_documents() -> Collection:
    """Processes the documents as a worker would."""
    for version in Version.objects.order_by("pk"):
        token = leases.take_lease(version.pk)
        assert token is not None
        worker.process_version(version.pk, token, deadline=float("inf"))
    return Collection.objects.get()


def test_demo_collection_holds_the_documentation_and_is_queued():
    create_demo_collection()

    paths = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    expected_ids = {"README.md", *(name for name in paths if not name.startswith("docs/decisions/"))}
    assert set(Document.objects.values_list("doc_id", flat=True)) == expected_ids
    assert set(Version.objects.values_list("state", flat=True)) == {"queued"}


def test_first_search_finds_the_right_page():
    create_demo_collection()
    collection = process_demo_documents()

    for query, page in PAGES_BY_QUESTION.items():
        result = pipeline.search([collection], SearchRequest(query=query, k=3, filter=parse_filter("")))
        assert page in [hit.doc_id for hit in result.hits], query


def test_demo_agent_reads_and_collection_admins_write_the_demo_collection(carl: User):
    create_demo_collection()
    collection = Collection.objects.get()

    agent, user = (User.objects.get(login=f"demo.{name}") for name in ("agent", "user"))
    assert access.rights(agent, collection) == {"read"}
    assert access.rights(carl, collection) == {"read", "write", "manage"}
    assert access.rights(user, collection) == access.rights(make_user("eve"), collection) == frozenset()


def test_demo_collection_is_created_once_and_not_again_after_its_deletion():
    create_demo_collection()
    document_count = Document.objects.count()
    create_demo_collection()
    assert (Collection.objects.count(), Document.objects.count()) == (1, document_count)
    Collection.objects.update(deleted_at=Collection.objects.get().sys_created_at)
    create_demo_collection()
    assert not Collection.objects.filter(deleted_at=None).exists()


def test_installation_without_documentation_has_no_demo_collection(tmp_path: Path, settings: Any):
    settings.BASE_DIR = tmp_path
    create_demo_collection()

    assert not Collection.objects.exists()


def test_without_demo_users_there_is_no_demo_collection():
    demo_documents.load_demo_documents()

    assert not Collection.objects.exists() and Role.objects.filter(name="collection_admin").exists()
