"""Names of files, metadata, texts and queries are not in the log, which has ids and sizes."""

from typing import Any

import pytest

from collections_app.models import Document
from tests.collections_app.http.calls import BY_TAG, DELETE_DOCUMENT, LOAD_TEXT, MANAGED, RELEVANT, Caller
from tests.collections_app.library import pdf

pytestmark = pytest.mark.django_db
CANARY = "canaryKq7"


def test_using_everything_leaves_nothing_in_the_log(manager: Caller, log_lines: list[str], capfd: Any):  # C49
    place: dict[str, Any] = {"collection_name": f"{CANARY}-place"}
    metadata = f'{{"type": "{CANARY}"}}'
    responses = [
        manager.upload(pdf(CANARY), f"{CANARY}.pdf", form={"metadata": metadata, "doc_id": f"{CANARY}-1"}, **place),
        manager.upload(b"%PDF-1.7 broken", f"{CANARY}.pdf", form={"metadata": metadata}, **place),
        manager.upload(CANARY.encode() + bytes(9), f"{CANARY}.exe", **place),
        manager.post(LOAD_TEXT, {"text": f"{CANARY} text", "metadata": {"n": CANARY}}, **place),
        manager.post(LOAD_TEXT, {"text": f"{CANARY} text", "metadata": {"priority": CANARY}}, **place),
        manager.post(LOAD_TEXT, {"text": CANARY, CANARY: CANARY}, **place),
        manager.get(RELEVANT, collection_names=place["collection_name"], query=CANARY, metadata=f"type={CANARY}"),
        manager.get(RELEVANT, collection_names=place["collection_name"], query=CANARY, metadata=f"^{CANARY}^"),
        manager.post(BY_TAG, {"tag_info": f"type={CANARY}", **place}),
        manager.get(BY_TAG, collection_name=f"{CANARY}-missing"),
    ]
    document = Document.objects.get(doc_id=f"{CANARY}-1")
    path = f"{MANAGED}/{document.collection_id}/documents/{document.pk}"
    responses += [
        manager.get(path),
        manager.get(f"{path}/content"),
        manager.patch(path, {"metadata": {"type": f"{CANARY}-new"}}),
        manager.post(f"{path}/reload"),
        manager.delete(DELETE_DOCUMENT, id_value=document.doc_id, **place),
    ]
    whole = "\n".join(log_lines) + "".join(capfd.readouterr())

    assert [response.status_code for response in responses] == [
        201, 422, 415, 201, 400, 400, 200, 400, 200, 404, 200, 200, 200, 202, 200
    ]  # fmt: skip
    assert whole.count("request_finished") >= len(responses) and document.pk in whole
    assert CANARY not in whole and CANARY.lower() not in whole.lower()
