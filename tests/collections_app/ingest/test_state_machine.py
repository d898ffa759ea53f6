"""After any sequence of loads, replacements, deletions and processing, searches match a simple model."""

import time
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction
from django.db.models import F
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from collections_app.documents import deletion
from collections_app.extract import UnreadableFile
from collections_app.ingest import steps, worker
from collections_app.models import Collection, Version
from collections_app.queue import leases
from system.errors import Conflict, NotFound
from tests.collections_app.builders import make_collection
from tests.collections_app.ingest.world import (
    expire_leases,
    fetch_rows,
    process_queue,
    row_counts,
    sample_text,
    store_document,
    wrong_term_counts,
)

pytestmark = pytest.mark.django_db

NAME_STRATEGY = st.sampled_from(["a", "b", "c"])
# The content of a file; 0 is an empty file, -1 an unreadable one.
CONTENT_STRATEGY = st.integers(-1, 3)
BROKEN_PDF = b"%PDF-1.4 broken"


def load_options(content: int) -> dict[str, Any]:
    if content < 0:
        return {"data": BROKEN_PDF, "format": "pdf"}
    return {"data": sample_text(content * 2).encode() or b" ", "format": "text"}


@dataclass
class ExpectedDocument:
    """The expected state of a document: its searchable content and its newest content."""

    newest_content: int
    searched_content: int | None = None
    is_pending: bool = True
    has_failed: bool = False

    def mark_processed(self) -> None:
        if self.is_pending:
            self.is_pending = False
            self.has_failed = self.newest_content < 0
            if not self.has_failed:
                self.searched_content = self.newest_content


class LoadMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.collection = make_collection("law", text_configuration="english")
        self.documents: dict[str, ExpectedDocument] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    @rule(
        name=NAME_STRATEGY,
        content=CONTENT_STRATEGY,
        on_duplicate=st.sampled_from(["skip", "replace", "error"]),
        takes_lease=st.booleans(),
    )
    def load(self, name: str, content: int, on_duplicate: str, takes_lease: bool) -> None:
        expected_document = self.documents.get(name)
        is_same_content = expected_document is not None and expected_document.newest_content == content
        try:
            options: dict[str, Any] = {"doc_id": name, "on_duplicate": on_duplicate, "takes_lease": takes_lease}
            store_result = store_document(self.collection, **options, **load_options(content))
        except Conflict:
            assert expected_document is not None and (
                on_duplicate == "error" or (on_duplicate == "skip" and not is_same_content)
            )
            return
        assert expected_document is None or on_duplicate == "replace" or (on_duplicate == "skip" and is_same_content)
        if expected_document is None or not is_same_content or expected_document.has_failed:
            assert not store_result.is_duplicate
            self.documents[name] = ExpectedDocument(
                content, expected_document.searched_content if expected_document else None
            )
        else:
            assert store_result.is_duplicate
        if store_result.lease_token is not None:
            worker.process_in_request(store_result)
            self.documents[name].mark_processed()

    @rule(name=NAME_STRATEGY)
    def delete(self, name: str) -> None:
        document = self.documents.pop(name, None)
        try:
            deletion.delete_document(self.collection, name)
        except NotFound:
            assert document is None
        else:
            assert document is not None

    @rule(step_count=st.integers(0, 3))
    def process_some_steps(self, step_count: int) -> None:
        """Resets the attempts, because their limit has its own tests."""
        lease = leases.take_next_lease()
        if lease is None:
            return
        for _ in range(step_count):
            try:
                version = leases.leased_version(lease.version_id, lease.token)
                steps.STEPS[version.state](version, 60.0)
            except (leases.LeaseLost, UnreadableFile):
                break
        expire_leases()
        Version.objects.update(attempt=0)

    @rule()
    def process_all(self) -> None:
        process_queue()
        for document in self.documents.values():
            document.mark_processed()

    @rule()
    def purge(self) -> None:
        deletion.purge_deleted(time.monotonic() + 60)

    @precondition(lambda self: self.documents)
    @rule(name=NAME_STRATEGY)
    def retry(self, name: str) -> None:
        expected_document = self.documents.get(name)
        if expected_document is None:
            return
        newest_version = Version.objects.get(document__doc_id=name, document__deleted_at=None, document__newest=F("pk"))
        try:
            worker.retry_document(newest_version.document)
        except Conflict:
            assert not expected_document.has_failed
        else:
            assert expected_document.has_failed
            expected_document.is_pending, expected_document.has_failed = True, False

    @invariant()
    def searches_match_the_model(self) -> None:
        self.update_finished_documents()
        characters_by_id = dict(
            Version.objects.filter(collection=self.collection, is_searched=True).values_list(
                "document__doc_id", "characters"
            )
        )
        expected_characters = {
            name: len(sample_text(document.searched_content * 2))
            for name, document in self.documents.items()
            if document.searched_content is not None
        }
        assert {name: characters for name, characters in characters_by_id.items() if characters > 1} == {
            name: characters for name, characters in expected_characters.items() if characters
        }
        assert set(characters_by_id) == set(expected_characters)
        assert wrong_term_counts(self.collection) == []

    def update_finished_documents(self) -> None:
        """Updates the model for documents that a worker had finished before it was stopped."""
        for name, document in self.documents.items():
            if (
                document.is_pending
                and Version.objects.filter(
                    document__doc_id=name,
                    document__deleted_at=None,
                    document__newest=F("pk"),
                    state__in=("ready", "empty"),
                ).exists()
            ):
                document.mark_processed()


def run_machine(examples: int, steps_per_example: int) -> None:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    run_state_machine_as_test(
        LoadMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps_per_example,
            deadline=None,
            suppress_health_check=checks,
        ),
    )


def test_searches_match_a_simple_model():
    run_machine(15, 20)
    assert (
        set(row_counts().values()) == {0}
        and fetch_rows("SELECT * FROM term_count") == []
        and not Collection.objects.exists()
    )


@pytest.mark.nightly
def test_searches_match_a_simple_model_in_long_runs():
    run_machine(400, 50)
