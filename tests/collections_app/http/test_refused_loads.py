"""What a refused load says, so that its sender knows what to mend."""

import pytest

from tests.collections_app.http.calls import LOAD_TEXT, Caller, failed

pytestmark = pytest.mark.django_db


def test_who_wants_no_repetition_is_told_what_is_there(manager: Caller):
    asked = {"text": "The toner is red.", "on_duplicate": "error"}
    kept = manager.post(LOAD_TEXT, asked, collection_name="manuals").json()["doc_id"]
    refused = manager.post(LOAD_TEXT, asked, collection_name="manuals")

    assert failed(refused) == (409, "duplicate", None)
    assert f"its doc_id is {kept}." in refused.json()["errors"][0]["message"]


def test_a_file_without_a_name_is_told_from_no_file(manager: Caller):
    for form, said in (({"file": "hello"}, "The part file has no file name"), ({"metadata": "{}"}, "Send one file")):
        refused = manager.form(form, collection_name="manuals")
        assert failed(refused) == (400, "mandatory", "file")
        assert refused.json()["errors"][0]["message"].startswith(said)
    other = manager.raw(b"hello", "text/plain", collection_name="manuals")
    assert failed(other) == (415, "unsupported_media_type", "file")
