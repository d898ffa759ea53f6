"""No value of the Content-Type header causes a server error."""

import importlib
import os
from io import BytesIO
from typing import Any
from unittest import mock

import pytest
from django.test import RequestFactory

from accounts.models import User
from tests.collections_app.http.calls import key_caller
from tests.collections_app.library import make_library_collection

HOSTILE_TYPES = [
    "a/b; x*=bogus''b",
    "a/b;1*;1;1*0=",
    *(
        f"application/json; charset={name}"
        for name in ("rot13", "hex", "zlib", "undefined", "punycode", "idna", "unicode_escape", "utf-16", "bogus", '"')
    ),
    "application/json; charset*=utf-8''rot13",
    "application/json; charset=\u00e9",
    "multipart/form-data; boundary=x; charset=cp037",
]  # fmt: skip


def status_of(method: str, path: str, **environ: Any) -> tuple[int, bytes]:
    """Sends a request to the WSGI application; returns the status and the body."""
    with mock.patch.dict(os.environ):  # restores what the import removes
        application = importlib.import_module("config.wsgi").application
    messages: list[str] = []
    request_environ = RequestFactory().generic(method, path).environ  # the factory would fail on such a header
    response = application({**request_environ, **environ}, lambda status, headers: messages.append(status))
    return int(messages[0].split()[0]), b"".join(response)


@pytest.mark.parametrize(
    "header", ["", "application/json; charset=UTF-8", 'text/plain; charset="utf-8"', *HOSTILE_TYPES]
)
def test_query_strings_are_always_utf8(carl: User, header: str):
    make_library_collection("gr\u00fc\u00dfe \\x41")
    key = key_caller(carl).headers["Authorization"]
    path = "/get_list_of_documents_names?collection_name=gr%C3%BC%C3%9Fe%20%5Cx41"

    assert status_of("GET", path, CONTENT_TYPE=header, HTTP_AUTHORIZATION=key) == (200, b"[]")


@pytest.mark.parametrize("header", HOSTILE_TYPES)
@pytest.mark.parametrize(
    "path", ["/get_relevant_documents", "/load_document_to_collection", "/load_text_to_collection"]
)
def test_body_with_a_hostile_type_is_not_read(carl: User, path: str, header: str):
    body = b'{"query": "x"}'
    environ = {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": header}

    status, content = status_of("POST", path, HTTP_AUTHORIZATION=key_caller(carl).headers["Authorization"], **environ)
    assert (status, b"unsupported_media_type" in content) == (415, True)
