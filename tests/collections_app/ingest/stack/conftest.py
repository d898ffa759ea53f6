"""Separate PostgreSQL and Valkey servers, with the processes of the product as on separate hosts."""

from collections.abc import Iterator

import pytest

from tests.collections_app.ingest.stack.product import Product, running_product
from tests.config.shared_servers import SharedServers


@pytest.fixture(scope="package")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """A PostgreSQL server that keeps acknowledged transactions when its process ends."""
    servers = SharedServers(tmp_path_factory.mktemp("shared")).start_postgres("-c", "synchronous_commit=on")
    with running_product(servers, tmp_path_factory) as product:
        yield product
