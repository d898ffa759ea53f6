"""A collection that Carl manages, a local web server that answers as a test says, and a folder that may be watched."""

import os
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from collections_app.models import Collection
from tests.collections_app.http.calls import KeyCaller, make_key_caller
from tests.collections_app.library import make_library_collection
from tests.collections_app.sources.world import Site
from tests.support.users import make_user
from tests.system.outbound.hostile import FakeResolver, serving


@pytest.fixture
def collection(db: Any) -> Collection:
    return make_library_collection(readers=("itil",))


@pytest.fixture
def manager(carl: Any) -> KeyCaller:
    return make_key_caller(carl)


@pytest.fixture
def reader(db: Any) -> KeyCaller:
    return make_key_caller(make_user("rita", "itil"))


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    """Names resolve to loopback, which is a listed network; the rest is the policy of production."""
    site = Site(FakeResolver(["127.0.0.1"]))
    settings.WEB_PAGE_POLICY = {
        "allow_private": False,
        "private_networks": (ip_network("127.0.0.0/8"),),
        "resolve": site.resolver,
    }
    with serving(site.respond) as server:
        site.server = server
        yield site


@pytest.fixture
def watched(tmp_path: Path, settings: Any) -> Path:
    """An allowed folder, which is empty."""
    folder = tmp_path / "allowed" / "handbooks"
    folder.mkdir(parents=True)
    settings.WATCH_DIRS = (tmp_path / "allowed",)
    os.utime(folder)
    return folder
