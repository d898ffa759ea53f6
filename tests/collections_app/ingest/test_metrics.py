"""The metrics of the queue."""

import pytest
from django.test import Client

from collections_app.ingest import worker
from collections_app.models import Collection
from tests.accounts.callers import basic_auth
from tests.collections_app.ingest.world import fetch_rows, store_document
from tests.support.users import make_user

pytestmark = pytest.mark.django_db


def test_metrics_count_unfinished_and_failed_documents(collection: Collection, client: Client):
    store_document(collection, b"waiting")
    worker.process_in_request(store_document(collection, b"done", takes_lease=True))
    worker.process_in_request(store_document(collection, b"%PDF-1.4 broken", format="pdf", takes_lease=True))
    fetch_rows("UPDATE document_version SET next_at = clock_timestamp() - interval '90 s' RETURNING 1")
    make_user("scraper", "monitoring")
    response = client.get("/metrics", headers=basic_auth("scraper"))
    metrics = dict(line.rsplit(" ", 1) for line in response.content.decode().splitlines() if not line.startswith("#"))
    assert metrics['servicebase_documents_unfinished{state="queued"}'] == "1.0"
    assert metrics['servicebase_documents_unfinished{state="embedding"}'] == "0.0"
    assert metrics['servicebase_documents_failed{reason="damaged"}'] == "1.0"
    assert 90 <= float(metrics["servicebase_documents_oldest_due_seconds"]) < 150
