"""The error of a refused load explains what to correct."""

from urllib.parse import urlencode

import pytest

from collections_app.models import Collection, Document
from tests.collections_app.http.calls import BY_TAG_PATH, DOCUMENT_NAMES_PATH, LOAD_TEXT_PATH, KeyCaller, error_of

pytestmark = pytest.mark.django_db


def test_refused_duplicate_names_the_existing_document(manager: KeyCaller):
    body = {"text": "The toner is red.", "on_duplicate": "error"}
    doc_id = manager.post(LOAD_TEXT_PATH, body, collection_name="manuals").json()["doc_id"]
    refusal = manager.post(LOAD_TEXT_PATH, body, collection_name="manuals")

    assert error_of(refusal) == (409, "duplicate", None)
    assert f'with the doc_id "{doc_id}".' in refusal.json()["errors"][0]["message"]


def test_file_without_a_name_differs_from_no_file(manager: KeyCaller):
    for form, message in (
        ({"file": "hello"}, "The form field file has no file name"),
        ({"metadata": "{}"}, "Send one file"),
    ):
        refusal = manager.send_form(form, collection_name="manuals")
        assert error_of(refusal) == (400, "mandatory", "file")
        assert refusal.json()["errors"][0]["message"].startswith(message)
    raw_response = manager.send_raw(b"hello", "text/plain", collection_name="manuals")
    assert error_of(raw_response) == (415, "unsupported_media_type", "file")


def test_control_characters_are_refused(manager: KeyCaller):
    refusal = manager.post(LOAD_TEXT_PATH, {"text": "a\1\2\3b"}, collection_name="manuals")

    assert error_of(refusal) == (400, "invalid_parameter", "text")
    assert "too many control characters" in refusal.json()["errors"][0]["message"]
    assert (Document.objects.count(), Collection.objects.count()) == (0, 0)
    assert manager.load("A single one\1 is let through.")["document_status"] == "ready"


def test_unassigned_characters_are_accepted(manager: KeyCaller):
    for text in ("Thanks \U0001fa77", "日本 \U0001fae9", "\uf8ff"):
        manager.load(text)
    contents = {passage["page_content"] for passage in manager.get(BY_TAG_PATH, collection_name="manuals").json()}

    assert contents == {"Thanks \U0001fa77", "日本 \U0001fae9", "\uf8ff"}


def test_invalid_utf8_is_refused_in_new_names_and_accepted_in_existing_ones(manager: KeyCaller):
    query_string = urlencode({"collection_name": b"\xff\xfe"})
    refusal = manager.post(f"{LOAD_TEXT_PATH}?{query_string}", {"text": "one"})

    assert error_of(refusal) == (400, "invalid_parameter", "collection_name")
    assert "UTF-8" in refusal.json()["errors"][0]["message"]
    assert Collection.objects.count() == 0
    doc_id_refusal = manager.post(LOAD_TEXT_PATH, {"text": "one", "doc_id": "a\ufffd"}, collection_name="manuals")
    assert error_of(doc_id_refusal) == (400, "invalid_parameter", "doc_id")
    manager.load("one", "before")
    Collection.objects.filter(name="before").update(name="\ufffd\ufffd")
    assert manager.get(f"{DOCUMENT_NAMES_PATH}?{query_string}").status_code == 200
