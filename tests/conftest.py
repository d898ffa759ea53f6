"""Fixtures of all tests: the named users, empty process caches, dropped tables, and log lines."""

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from accounts.models import User
from system import process_cache
from system.records import acting_user
from tests.browser.chromium import chromium
from tests.providers.node import node
from tests.support.programs import MissingProgram, tesseract
from tests.support.users import make_user, signed_in_client


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--nightly", action="store_true", help="run the long tests too")


# The tests in each of these folders share servers, which are started once.
FOLDERS_WITH_SHARED_SERVERS = (
    "tests/browser/",
    "tests/collections_app/ingest/stack/",
    "tests/sso/real/",
    "tests/tableapi/stack/",
)
# The tests in these files run for minutes, so they are distributed individually.
SPLIT_PATHS = ("tests/project/fuzz/", "tests/tableapi/noninterference/test_pairs.py")


class FileScopeScheduling(LoadScopeScheduling):  # type: ignore[misc]  # has no types
    """Distributes whole files, or whole folders that share servers, to the test processes."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if file.startswith(SPLIT_PATHS):
            return nodeid
        return next((folder for folder in FOLDERS_WITH_SHARED_SERVERS if file.startswith(folder)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> FileScopeScheduling:
    return FileScopeScheduling(config, log)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    # The browser tests run in one process and take longest, so they start first. pytest-django would run them last.
    items.sort(key=lambda item: not item.nodeid.startswith("tests/browser/"))
    if not config.getoption("--nightly"):
        for item in items:
            if "nightly" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="long test; runs with --nightly"))


# The program that the tests with a marker need.
REQUIRED_PROGRAMS: dict[str, Callable[[], object]] = {"browser": chromium, "provider": node, "ocr": tesseract}
SKIP_PREFIX = "missing program: "


@cache
def missing_program_message(marker: str) -> str | None:
    """How to get the program that tests with this marker need, or None if it is available."""
    try:
        REQUIRED_PROGRAMS[marker]()
    except MissingProgram as error:
        return str(error)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: Any) -> None:
    """Skips tests whose program is missing. With SVC_TEST_REQUIRE=browser,provider, they fail instead."""
    if item.get_closest_marker("skip"):
        return
    for marker in REQUIRED_PROGRAMS:
        if item.get_closest_marker(marker) and (reason := missing_program_message(marker)):
            if marker in os.environ.get("SVC_TEST_REQUIRE", "").split(","):
                pytest.fail(reason, pytrace=False)
            pytest.skip(SKIP_PREFIX + reason)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Reports skipped tests in the last lines of the output, where they are not overlooked."""
    yield
    skipped_reports = terminalreporter.stats.get("skipped", ())
    reasons = Counter(
        report.longrepr[2].partition(SKIP_PREFIX)[2] for report in skipped_reports if isinstance(report.longrepr, tuple)
    )
    for reason, count in reasons.items():
        if reason:
            terminalreporter.section(f"{count} tests were skipped", yellow=True)
            terminalreporter.line(reason)


@pytest.fixture(autouse=True)
def empty_process_caches() -> None:
    """Each test starts with the caches of a new process."""
    acting_user.set_current(None)
    process_cache.clear_all()


@pytest.fixture(autouse=True)
def drop_designed_tables(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test that commits, Django empties its tables. This fails while designed tables refer to them."""
    marker = request.node.get_closest_marker("django_db")
    is_transactional = "transactional_db" in request.fixturenames or bool(marker and marker.kwargs.get("transaction"))
    if is_transactional:
        request.getfixturevalue("transactional_db")  # its teardown runs after this one
    yield
    if is_transactional:
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA records CASCADE; CREATE SCHEMA records")


@pytest.fixture
def alice(db: Any) -> User:
    """The administrator."""
    return make_user("alice", "admin", email="alice@example.com")


@pytest.fixture
def bob(db: Any) -> User:
    """A user without roles."""
    return make_user("bob", email="bob@example.com")


@pytest.fixture
def sonja(db: Any) -> User:
    """Administers single sign-on."""
    return make_user("sonja", "sso_admin")


@pytest.fixture
def carl(db: Any) -> User:
    """Administers document collections."""
    return make_user("carl", "collection_admin")


@pytest.fixture
def as_alice(alice: User) -> Client:
    return signed_in_client(alice)


@pytest.fixture
def as_bob(bob: User) -> Client:
    return signed_in_client(bob)


@pytest.fixture
def log_lines(caplog: Any, capfd: Any) -> Iterator[list[str]]:
    """All records of Python's logging, without the product's own log lines, which are printed."""
    record_texts: list[str] = []

    class RecordingHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            record_texts.append(repr(record.__dict__))

    handler = RecordingHandler()
    root_logger, level_before = logging.getLogger(), logging.getLogger().level
    root_logger.addHandler(handler)
    root_logger.setLevel(logging.INFO)
    yield record_texts
    root_logger.setLevel(level_before)
    root_logger.removeHandler(handler)
