"""Requests to document collections as scripts send them, with an access key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from accounts.authentication import access_keys
from accounts.models import User
from tests.accounts.callers import bearer_auth

LOAD_FILE_PATH = "/load_document_to_collection"
LOAD_TEXT_PATH = "/load_text_to_collection"
SEARCH_PATH = "/get_relevant_documents"
BY_TAG_PATH = "/get_content_by_tag"
DOCUMENT_NAMES_PATH = "/get_list_of_documents_names"
COLLECTION_LIST_PATH = "/get_list_of_collection"
DELETE_DOCUMENT_PATH = "/delete_document_from_collection"
DELETE_COLLECTION_PATH = "/delete_collection"
ENDPOINT_PATHS = (
    LOAD_FILE_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    BY_TAG_PATH,
    DOCUMENT_NAMES_PATH,
    COLLECTION_LIST_PATH,
    DELETE_DOCUMENT_PATH,
    DELETE_COLLECTION_PATH,
)
API_PATH = "/api/collections"


@dataclass(frozen=True)
class KeyCaller:
    """A caller with an access key."""

    headers: dict[str, str]

    def send(self, method: str, path: str, body: Any = None, *, headers: Any = None, **query: Any) -> Any:
        """Sends `body` as JSON, and `query` in the query string, where a list repeats its name."""
        url = f"{path}?{urlencode(query, doseq=True)}" if query else path
        encoded_body = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        return Client().generic(
            method, url, encoded_body, content_type="application/json", headers={**self.headers, **(headers or {})}
        )

    def get(self, path: str, **query: Any) -> Any:
        return self.send("GET", path, **query)

    def post(self, path: str, body: Any = None, **query: Any) -> Any:
        return self.send("POST", path, body, **query)

    def patch(self, path: str, body: Any, **options: Any) -> Any:
        return self.send("PATCH", path, body, **options)

    def delete(self, path: str, body: Any = None, **query: Any) -> Any:
        return self.send("DELETE", path, body, **query)

    def upload(
        self, content: bytes, filename: str, *, path: str = LOAD_FILE_PATH, form: Any = None, **query: Any
    ) -> Any:
        file = SimpleUploadedFile(filename, content, content_type="application/octet-stream")
        return self.send_form({**(form or {}), "file": file}, path=path, **query)

    def send_form(self, fields: Any, *, path: str = LOAD_FILE_PATH, **query: Any) -> Any:
        return self.send_raw(encode_multipart(BOUNDARY, fields), MULTIPART_CONTENT, path=path, **query)

    def send_raw(
        self, body: bytes, content_type: str, *, path: str = LOAD_FILE_PATH, headers: Any = None, **query: Any
    ) -> Any:
        url = f"{path}?{urlencode(query, doseq=True)}"
        return Client().generic(
            "POST", url, body, content_type=content_type, headers={**self.headers, **(headers or {})}
        )

    def load(self, text: str, collection: str = "manuals", **body: Any) -> Any:
        """Loads a text and waits until it is searchable."""
        response = self.post(LOAD_TEXT_PATH, {"text": text, **body}, collection_name=collection)
        assert response.status_code in (200, 201), response.content
        return response.json()


def make_key_caller(user: User, *, scope: Sequence[str] = ()) -> KeyCaller:
    return KeyCaller(bearer_auth(access_keys.create_key(user, "script", expires_at=None, scope=list(scope))))


def error_of(response: Any) -> tuple[int, str, str | None]:
    """The status, code and field of a refusal."""
    first_error = response.json()["errors"][0]
    return response.status_code, first_error["code"], first_error.get("field")
