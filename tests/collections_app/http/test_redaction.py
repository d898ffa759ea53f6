"""The log contains ids and sizes, but no file names, metadata, texts or queries."""

from typing import Any

import pytest

from collections_app.models import Document
from tests.collections_app.http.calls import (
    API_PATH,
    BY_TAG_PATH,
    DELETE_DOCUMENT_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
)
from tests.collections_app.library import pdf

pytestmark = pytest.mark.django_db
CANARY = "canaryKq7"


def test_no_request_leaves_content_in_the_log(manager: KeyCaller, log_lines: list[str], capfd: Any):  # C49
    parameters: dict[str, Any] = {"collection_name": f"{CANARY}-place"}
    metadata = f'{{"type": "{CANARY}"}}'
    responses = [
        manager.upload(
            pdf(CANARY), f"{CANARY}.pdf", form={"metadata": metadata, "doc_id": f"{CANARY}-1"}, **parameters
        ),
        manager.upload(b"%PDF-1.7 broken", f"{CANARY}.pdf", form={"metadata": metadata}, **parameters),
        manager.upload(CANARY.encode() + bytes(9), f"{CANARY}.exe", **parameters),
        manager.post(LOAD_TEXT_PATH, {"text": f"{CANARY} text", "metadata": {"n": CANARY}}, **parameters),
        manager.post(LOAD_TEXT_PATH, {"text": f"{CANARY} text", "metadata": {"priority": CANARY}}, **parameters),
        manager.post(LOAD_TEXT_PATH, {"text": CANARY, CANARY: CANARY}, **parameters),
        manager.get(
            SEARCH_PATH, collection_names=parameters["collection_name"], query=CANARY, metadata=f"type={CANARY}"
        ),
        manager.get(SEARCH_PATH, collection_names=parameters["collection_name"], query=CANARY, metadata=f"^{CANARY}^"),
        manager.post(BY_TAG_PATH, {"tag_info": f"type={CANARY}", **parameters}),
        manager.get(BY_TAG_PATH, collection_name=f"{CANARY}-missing"),
    ]
    document = Document.objects.get(doc_id=f"{CANARY}-1")
    path = f"{API_PATH}/{document.collection_id}/documents/{document.pk}"
    responses += [
        manager.get(path),
        manager.get(f"{path}/content"),
        manager.patch(path, {"metadata": {"type": f"{CANARY}-new"}}),
        manager.post(f"{path}/reload"),
        manager.delete(DELETE_DOCUMENT_PATH, id_value=document.doc_id, **parameters),
    ]
    log_text = "\n".join(log_lines) + "".join(capfd.readouterr())

    assert [response.status_code for response in responses] == [
        201, 422, 415, 201, 400, 400, 200, 400, 200, 404, 200, 200, 200, 202, 200
    ]  # fmt: skip
    assert log_text.count("request_finished") >= len(responses) and document.pk in log_text
    assert CANARY not in log_text and CANARY.lower() not in log_text.lower()
