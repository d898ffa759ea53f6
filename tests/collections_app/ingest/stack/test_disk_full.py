"""The disk of the database becomes full during loads, and has space again later."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.collections_app.ingest.stack.product import GONE, Product, running_on
from tests.collections_app.ingest.world import text
from tests.config.shared import SharedServers
from tests.config.stack import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]

POSTGRES = ("-c", "synchronous_commit=on", "-c", "min_wal_size=32MB", "-c", "max_wal_size=48MB")
ENOUGH_REFUSALS = 5
MAX_LOADS = 2000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", str(folder)], check=False)
    if mounted.returncode != 0:
        pytest.skip("needs the right to mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def product(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with running_on(SharedServers(disk / "shared").start_postgres(*POSTGRES), tmp_path_factory) as result:
        yield result


def load_until_full(product: Product, content: str) -> tuple[list[str], list[int]]:
    """The acknowledged loads, and the status codes of the others."""
    acknowledged: list[str] = []
    refused: list[int] = []
    for number in range(MAX_LOADS):
        doc_id = f"document {number}"
        try:
            response = product.load(doc_id, content, is_waited_for=number % 4 == 0)
        except GONE:
            continue
        if response.status in (201, 202):
            acknowledged.append(doc_id)
        else:
            refused.append(response.status)
            assert "space" not in json.dumps(response.body)
        if len(refused) >= ENOUGH_REFUSALS:
            break
    return acknowledged, refused


def test_no_acknowledged_load_is_lost_and_work_continues_when_there_is_space(product: Product, disk: Path):  # C39
    content = text(2000)
    assert product.load("undisturbed", content, is_waited_for=True).status == 201
    undisturbed = product.chunks("undisturbed")
    acknowledged, refused = load_until_full(product, content)
    assert len(acknowledged) > 20 and set(refused) <= {503, 507} and len(refused) == ENOUGH_REFUSALS
    assert product.web.get("/healthz") == 200

    subprocess.run(["mount", "-o", "remount,size=2g", str(disk)], check=True)
    # Where its log had no room it ended, and what supervises it starts it again.
    if product.servers.process("postgres").poll() is not None:
        product.servers.start_postgres(*POSTGRES)
    eventually(lambda: product.load("afterwards", content, is_waited_for=True).status in (200, 201))
    product.wait_until_done(within_s=300)
    assert product.rows("SELECT DISTINCT state FROM document_version") == [("ready",)]
    assert all(product.chunks(doc_id) == undisturbed for doc_id in acknowledged)
    remaining = {doc_id for (doc_id,) in product.rows("SELECT doc_id FROM document")}
    assert remaining == {"undisturbed", "afterwards", *acknowledged}, "what was refused left something"
