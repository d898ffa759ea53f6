"""What tests of sources do: serve pages, add sources, run the worker, and read what is searchable."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from collections_app import tasks
from collections_app.ingest import worker
from collections_app.models import Collection, Document, ExtractedText, Source, Version
from collections_app.models.documents import UNFINISHED_STATES
from collections_app.queue import leases
from tests.collections_app.http.calls import API_PATH, KeyCaller
from tests.system.outbound.hostile import FakeResolver, HostileConnection, HostileServer, responds_with

HTML = "Content-Type: text/html; charset=utf-8"
Answer = Callable[[HostileConnection], None]


def html(text: str, status: str = "200 OK", *headers: str) -> Answer:
    body = f"<!doctype html><html><body><p>{text}</p></body></html>".encode()
    return responds_with(body, status, HTML, *headers)


def redirect(location: str) -> Answer:
    return responds_with(b"", "302 Found", f"Location: {location}")


@dataclass
class Site:
    """A web server with an answer for each path."""

    resolver: FakeResolver
    answers: dict[str, Answer] = field(default_factory=dict)
    server: HostileServer = None  # type: ignore[assignment]

    def respond(self, connection: HostileConnection) -> None:
        path = connection.request.split(b" ")[1].decode()
        self.answers.get(path, responds_with(b"", "404 Not Found"))(connection)

    def url(self, path: str = "/guide", host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.server.port}{path}"

    def last_request(self) -> str:
        return self.server.requests[-1].decode().lower()


def sources_path(collection: Collection, *parts: str) -> str:
    return "/".join((API_PATH, collection.pk, "sources", *parts))


def add_source(caller: KeyCaller, collection: Collection, kind: str, address: str | Path, **values: Any) -> Source:
    response = caller.post(sources_path(collection), {"kind": kind, "address": str(address), **values})
    assert response.status_code == 201, response.content
    return Source.objects.get(pk=response.json()["sys_id"])


def run_due() -> None:
    """Runs the tasks of the worker: refreshes, then the queued documents."""
    tasks.refresh_sources()
    for version in Version.objects.filter(state__in=UNFINISHED_STATES):
        token = leases.take_lease(version.pk)
        assert token is not None
        worker.process_version(version.pk, token, deadline=time.monotonic() + 30)


def refresh(source: Source) -> Source:
    Source.objects.filter(pk=source.pk).update(next_at="2020-01-01T00:00Z")
    run_due()
    return source.refreshed()


def texts(collection: Collection) -> dict[str, str]:
    """The searched text of each document, by `doc_id`."""
    documents = Document.objects.filter(collection=collection, deleted_at=None)
    rows = ExtractedText.objects.filter(version__is_searched=True, version__document__in=documents)
    found = [(row.version.document.doc_id, row.text.strip()) for row in rows.select_related("version__document")]
    return dict(sorted(found))
