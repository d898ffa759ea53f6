"""The database disk becomes full during loads, and later has free space again."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collections_app.ingest.stack.product import CONNECTION_ERRORS, Product, running_product
from tests.collections_app.ingest.world import sample_text
from tests.config.shared_servers import SharedServers
from tests.config.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

POSTGRES_OPTIONS = ("-c", "synchronous_commit=on", "-c", "min_wal_size=32MB", "-c", "max_wal_size=48MB")
MIN_REFUSALS = 5
MAX_LOADS = 2000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)], check=False)
    if mount.returncode != 0:
        pytest.skip("requires permission to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def product(small_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_product(
        SharedServers(small_disk / "shared").start_postgres(*POSTGRES_OPTIONS), tmp_path_factory
    ) as product:
        yield product


def load_until_full(product: Product, content: str) -> tuple[list[str], list[int]]:
    """Returns the ids of acknowledged loads and the status codes of refused ones."""
    acknowledged_ids: list[str] = []
    refused_statuses: list[int] = []
    for number in range(MAX_LOADS):
        doc_id = f"document {number}"
        try:
            response = product.load(doc_id, content, wait=number % 4 == 0)
        except CONNECTION_ERRORS:
            continue
        if response.status in (201, 202):
            acknowledged_ids.append(doc_id)
        else:
            refused_statuses.append(response.status)
            assert "space" not in json.dumps(response.body)
        if len(refused_statuses) >= MIN_REFUSALS:
            break
    return acknowledged_ids, refused_statuses


def test_no_acknowledged_load_is_lost_and_work_continues_when_there_is_space(product: Product, small_disk: Path):  # C39
    content = sample_text(2000)
    assert product.load("undisturbed", content, wait=True).status == 201
    expected_chunks = product.fetch_chunks("undisturbed")
    acknowledged_ids, refused_statuses = load_until_full(product, content)
    assert len(acknowledged_ids) > 20 and set(refused_statuses) <= {503, 507} and len(refused_statuses) == MIN_REFUSALS
    assert product.web.get("/healthz") == 200

    subprocess.run(["mount", "-o", "remount,size=2g", str(small_disk)], check=True)
    # PostgreSQL ends without space for its log, and its supervisor restarts it.
    if product.servers.process("postgres").poll() is not None:
        product.servers.start_postgres(*POSTGRES_OPTIONS)
    eventually(lambda: product.load("afterwards", content, wait=True).status in (200, 201))
    product.wait_until_done(timeout_s=300)
    assert product.fetch_rows("SELECT DISTINCT state FROM document_version") == [("ready",)]
    assert all(product.fetch_chunks(doc_id) == expected_chunks for doc_id in acknowledged_ids)
    stored_ids = {doc_id for (doc_id,) in product.fetch_rows("SELECT doc_id FROM document")}
    assert stored_ids == {"undisturbed", "afterwards", *acknowledged_ids}, "a refused load left rows"
