"""Storing a document: exactly once, complete, and durable before the response."""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from typing import Any, ClassVar

import pytest
from django.db import connections, transaction

from collections_app.documents import deletion, storage
from collections_app.models import Collection, Document, Version
from collections_app.models.documents import VersionState
from system.errors import BadRequest, Conflict, NotFound
from tests.collections_app.builders import DocumentLoader, make_collection
from tests.collections_app.ingest.world import fetch_rows, process_queue, row_counts, store_document

pytestmark = pytest.mark.django_db

LOAD_OPTIONS: dict[str, Any] = {"metadata": {"type": "guide"}}


def test_load_is_queued_with_its_bytes_size_and_hash(collection: Collection):
    data = bytes(range(256)) * 10_000
    store_result = store_document(collection, iter([data[:7], data[7:2_000_000], data[2_000_000:]]), **LOAD_OPTIONS)

    version = Version.objects.get(pk=store_result.version.pk)
    assert storage.read_content(version) == data
    assert (version.size, version.sha256) == (len(data), sha256(data).hexdigest())
    assert (version.state, version.generation, version.metadata, version.created_by) == (
        "queued",
        1,
        {"type": "guide"},
        "owner",
    )
    assert not store_result.is_duplicate and store_result.lease_token is None
    assert store_result.document.newest_id == version.pk
    assert [len(piece) for (piece,) in fetch_rows("SELECT data FROM document_piece ORDER BY number")] == [
        1048576, 1048576, 462848,
    ]  # fmt: skip


def test_id_is_generated_unless_the_caller_gives_one(collection: Collection):
    document = store_document(collection, b"a").document
    assert document.doc_id == document.id
    assert store_document(collection, b"b", doc_id="Cafe\u0301").document.doc_id == "Café"


@pytest.mark.parametrize("doc_id", ["", "   ", "a\x00b", "a\nb", "\ud800", "x" * 201])
def test_invalid_id_is_refused_and_nothing_is_stored(collection: Collection, doc_id: str):
    with pytest.raises(BadRequest) as exc_info:
        store_document(collection, doc_id=doc_id)
    assert exc_info.value.field == "doc_id"
    assert set(row_counts().values()) == {0}


@pytest.mark.parametrize(
    ("filename", "expected_name"),
    [
        ("report.pdf", "report.pdf"),
        ("../../etc/passwd", "passwd"),
        ("/etc/x", "x"),
        ("C:\\Users\\x\\a.docx", "a.docx"),
        ("..", ""),
        ("a\x00b\r\nc.txt", "abc.txt"),
        ("photo\u202egpj.exe", "photogpj.exe"),
        ("con", "con"),
        ("отчёт 👩‍💻.txt", "отчёт 👩‍💻.txt"),
        ("\ud800a", "a"),
        ("n" * 10_000, "n" * 255),
    ],
)
def test_file_name_is_cleaned(collection: Collection, filename: str, expected_name: str):  # C13
    assert store_document(collection, filename=filename).version.filename == expected_name


class TestDuplicates:
    """The outcome of a second load, by on_duplicate, changed values and doc_id."""

    CASES: ClassVar[Any] = (
        ("skip", {}, None, "duplicate"),
        ("skip", {}, "same", "duplicate"),
        ("skip", {}, "other", "document"),
        ("skip", {"data": b"other"}, None, "document"),
        ("skip", {"metadata": {"type": "note"}}, None, "document"),
        ("skip", {"metadata": {"flag": 1}}, None, "document"),
        ("skip", {"data": b"other"}, "same", "conflict"),
        ("skip", {"metadata": {}}, "same", "conflict"),
        ("error", {}, None, "conflict"),
        ("error", {}, "same", "conflict"),
        ("error", {"data": b"other"}, None, "document"),
        ("error", {"data": b"other"}, "same", "conflict"),
        ("error", {}, "other", "document"),
        ("replace", {}, None, "generation"),
        ("replace", {}, "same", "duplicate"),
        ("replace", {"data": b"other"}, None, "document"),
        ("replace", {"data": b"other"}, "same", "generation"),
        ("replace", {"metadata": {}}, "same", "generation"),
        ("replace", {"data": b"other"}, "other", "document"),
    )

    @pytest.mark.parametrize(("on_duplicate", "changes", "doc_id", "outcome"), CASES)
    @pytest.mark.parametrize("is_processed", [False, True])
    def test_repeated_load_has_the_expected_outcome(
        self,
        collection: Collection,
        on_duplicate: str,
        changes: Any,
        doc_id: Any,
        outcome: str,
        is_processed: bool,
    ):
        first_result = store_document(collection, b"same", doc_id="same", metadata={"type": "guide", "flag": True})
        if is_processed:
            process_queue()
        second_load = {"metadata": {"type": "guide", "flag": True}, "data": b"same", **changes}
        if outcome == "conflict":
            with pytest.raises(Conflict, match="on_duplicate=replace") as exc_info:
                store_document(collection, doc_id=doc_id, on_duplicate=on_duplicate, **second_load)
            assert exc_info.value.code == "duplicate"
            assert Version.objects.count() == 1
            return
        second_result = store_document(collection, doc_id=doc_id, on_duplicate=on_duplicate, **second_load)
        outcomes = {(True, True): "duplicate", (True, False): "generation", (False, False): "document"}
        assert outcomes[second_result.document == first_result.document, second_result.is_duplicate] == outcome
        if outcome == "generation":
            assert (second_result.version.generation, second_result.document.newest_id) == (2, second_result.version.pk)
        assert Version.objects.count() == (1 if outcome == "duplicate" else 2)

    def test_duplicates_in_other_collections_do_not_count(self, collection: Collection):  # C51
        store_document(collection, b"same", doc_id="same")
        other_collection = make_collection("elsewhere")
        for options in ({}, {"doc_id": "same"}, {"doc_id": "same", "on_duplicate": "error"}):
            data = repr(options).encode() if options else b"same"
            store_result = store_document(other_collection, data, **options)
            assert not store_result.is_duplicate
            deletion.delete_document(other_collection, store_result.document.doc_id)

    def test_deleted_document_is_not_a_duplicate(self, collection: Collection, document_loader: DocumentLoader):
        first_version = document_loader("The same.", doc_id="x")
        deletion.delete_document(collection, "x")
        second_version = document_loader("The same.", doc_id="x")
        assert (
            second_version.document_id != first_version.document_id,
            second_version.generation,
            second_version.state,
        ) == (True, 1, "ready")

    def test_failed_document_is_retried(self, collection: Collection):
        first_result = store_document(collection, b"The same.")
        Version.objects.update(state=VersionState.FAILED, error_code="damaged", error="x", attempt=5)
        second_result = store_document(collection, b"The same.", takes_lease=True)
        assert (second_result.version.pk, second_result.is_duplicate, second_result.lease_token is not None) == (
            first_result.version.pk,
            False,
            True,
        )
        assert (second_result.version.state, second_result.version.attempt, second_result.version.error) == (
            "queued",
            1,
            "",
        )


def test_loading_into_a_deleted_collection_is_refused(collection: Collection):  # C43
    deletion.delete_collection(Collection.objects.get())
    with pytest.raises(NotFound) as exc_info:
        store_document(collection)
    assert exc_info.value.field == "collection_name"
    assert Document.objects.count() == 0


def test_interrupted_upload_leaves_nothing(collection: Collection):  # C15
    def interrupted_upload() -> Any:
        yield b"x" * 3_000_000
        raise OSError

    with pytest.raises(OSError):  # noqa: PT011  (the caller's own)
        store_document(collection, interrupted_upload())
    assert set(row_counts().values()) == {0}


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    @pytest.mark.parametrize("doc_id", [None, "same"])
    def test_twenty_equal_loads_create_one_document(self, doc_id: str | None):  # C40
        collection = make_collection("manuals")

        def load(_: int) -> tuple[str, bool]:
            try:
                store_result = store_document(collection, b"same" * 500_000, doc_id=doc_id)
                return store_result.document.id, store_result.is_duplicate
            finally:
                connections.close_all()

        with ThreadPoolExecutor(20) as pool:
            outcomes = list(pool.map(load, range(20)))
        assert len({document for document, _ in outcomes}) == 1
        assert sorted(is_duplicate for _, is_duplicate in outcomes) == [False] + [True] * 19
        assert (row_counts()["document"], row_counts()["document_piece"]) == (1, 2)

    def test_twenty_replacements_create_twenty_generations(self):
        collection = make_collection("manuals")

        def load(number: int) -> int:
            try:
                store_result = store_document(collection, b"%d" % number, doc_id="same", on_duplicate="replace")
                return store_result.version.generation
            finally:
                connections.close_all()

        with ThreadPoolExecutor(20) as pool:
            assert sorted(pool.map(load, range(20))) == list(range(1, 21))
        document = Document.objects.get()
        assert document.newest == Version.objects.get(generation=20)

    def test_worker_is_notified_after_the_commit_and_a_lost_broker_is_harmless(self, settings: Any):  # C36
        collection = make_collection("manuals")
        with transaction.atomic():
            store_result = store_document(collection, b"a")
        settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
        assert Version.objects.get(pk=store_result.version.pk).state == "queued"
