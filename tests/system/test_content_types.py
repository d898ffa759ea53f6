"""No value of the Content-Type header causes a server error."""

import importlib
import os
from io import BytesIO
from typing import Any
from unittest import mock

import pytest
from django.test import RequestFactory

from accounts.models import User
from tests.collections_app.http.calls import make_key_caller
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


def send_wsgi_request(method: str, path: str, **environ: Any) -> tuple[int, bytes]:
    """Sends a request to the WSGI application; returns the status and the body."""
    with mock.patch.dict(os.environ):  # restores what the import removes
        application = importlib.import_module("config.wsgi").application
    status_lines: list[str] = []
    request_environ = RequestFactory().generic(method, path).environ  # the factory would fail on such a header
    content = application({**request_environ, **environ}, lambda status, headers: status_lines.append(status))
    return int(status_lines[0].split()[0]), b"".join(content)


@pytest.mark.parametrize(
    "content_type", ["", "application/json; charset=UTF-8", 'text/plain; charset="utf-8"', *HOSTILE_TYPES]
)
def test_query_strings_are_always_utf8(carl: User, content_type: str):
    make_library_collection("gr\u00fc\u00dfe \\x41")
    authorization = make_key_caller(carl).headers["Authorization"]
    path = "/get_list_of_documents_names?collection_name=gr%C3%BC%C3%9Fe%20%5Cx41"

    assert send_wsgi_request("GET", path, CONTENT_TYPE=content_type, HTTP_AUTHORIZATION=authorization) == (200, b"[]")


@pytest.mark.parametrize("content_type", HOSTILE_TYPES)
@pytest.mark.parametrize(
    "path", ["/get_relevant_documents", "/load_document_to_collection", "/load_text_to_collection"]
)
def test_body_with_a_hostile_type_is_not_read(carl: User, path: str, content_type: str):
    body = b'{"query": "x"}'
    environ = {"wsgi.input": BytesIO(body), "CONTENT_LENGTH": str(len(body)), "CONTENT_TYPE": content_type}
    environ["HTTP_AUTHORIZATION"] = make_key_caller(carl).headers["Authorization"]

    status, content = send_wsgi_request("POST", path, **environ)
    assert (status, b"unsupported_media_type" in content) == (415, True)
