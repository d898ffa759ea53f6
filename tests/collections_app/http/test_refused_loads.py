"""A refused load says what the sender must correct."""

from urllib.parse import urlencode

import pytest

from collections_app.models import Collection, Document
from tests.collections_app.http.calls import BY_TAG, LOAD_TEXT, NAMES, Caller, failed

pytestmark = pytest.mark.django_db


def test_refused_duplicate_names_the_existing_document(manager: Caller):
    query = {"text": "The toner is red.", "on_duplicate": "error"}
    remaining = manager.post(LOAD_TEXT, query, collection_name="manuals").json()["doc_id"]
    refused = manager.post(LOAD_TEXT, query, collection_name="manuals")

    assert failed(refused) == (409, "duplicate", None)
    assert f"its doc_id is {remaining}." in refused.json()["errors"][0]["message"]


def test_file_without_a_name_differs_from_no_file(manager: Caller):
    for form, said in (
        ({"file": "hello"}, "The form field file has no file name"),
        ({"metadata": "{}"}, "Send one file"),
    ):
        refused = manager.form(form, collection_name="manuals")
        assert failed(refused) == (400, "mandatory", "file")
        assert refused.json()["errors"][0]["message"].startswith(said)
    other = manager.raw(b"hello", "text/plain", collection_name="manuals")
    assert failed(other) == (415, "unsupported_media_type", "file")


def test_control_characters_are_refused(manager: Caller):
    refused = manager.post(LOAD_TEXT, {"text": "a\1\2\3b"}, collection_name="manuals")

    assert failed(refused) == (400, "invalid_parameter", "text")
    assert "too many control characters" in refused.json()["errors"][0]["message"]
    assert (Document.objects.count(), Collection.objects.count()) == (0, 0)
    assert manager.load("A single one\1 is let through.")["document_status"] == "ready"


def test_unassigned_characters_are_accepted(manager: Caller):
    for text in ("Thanks \U0001fa77", "日本 \U0001fae9", "\uf8ff"):
        manager.load(text)
    remaining = {passage["page_content"] for passage in manager.get(BY_TAG, collection_name="manuals").json()}

    assert remaining == {"Thanks \U0001fa77", "日本 \U0001fae9", "\uf8ff"}


def test_name_that_was_no_utf_8_is_refused_and_an_old_one_is_found(manager: Caller):
    sent = urlencode({"collection_name": b"\xff\xfe"})
    refused = manager.post(f"{LOAD_TEXT}?{sent}", {"text": "one"})

    assert failed(refused) == (400, "invalid_parameter", "collection_name")
    assert "UTF-8" in refused.json()["errors"][0]["message"]
    assert Collection.objects.count() == 0
    of_document = manager.post(LOAD_TEXT, {"text": "one", "doc_id": "a\ufffd"}, collection_name="manuals")
    assert failed(of_document) == (400, "invalid_parameter", "doc_id")
    manager.load("one", "before")
    Collection.objects.filter(name="before").update(name="\ufffd\ufffd")
    assert manager.get(f"{NAMES}?{sent}").status_code == 200
