"""Reading a hostile file yields text or UnreadableFile within the limits, and leaves nothing behind."""

import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import psutil
import pytest

from collections_app.extract import UnreadableFile, configured_limits, extract
from tests.collections_app.extract import hostile_archives, hostile_pdfs, hostile_texts  # noqa: F401  (they register their files)
from tests.collections_app.extract.hostile import ARCHIVES, PDFS, TEXTS, HostileFile
from tests.collections_app.extract.limits import LEAKED_PASSWD_LINE, limits_for_tests, outcome_of

CASES = ARCHIVES | PDFS | TEXTS


class OutcomePool:
    """Computes the outcomes and durations of all cases in parallel."""

    def __init__(self, names: Iterable[str]) -> None:
        self.executor = ThreadPoolExecutor(os.cpu_count())
        self.futures = {name: self.executor.submit(self.outcome_of, CASES[name]) for name in names}

    @staticmethod
    def outcome_of(case: HostileFile) -> tuple[str, float]:
        data, started_at = case.build(), time.monotonic()
        return outcome_of(data, case.format, limits_for_tests(**case.changed_limits)), time.monotonic() - started_at


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OutcomePool]:
    """Checks at the end that no additional processes, descriptors or temporary files are left."""
    items: list[Any] = request.session.items
    names = [item.callspec.params["name"] for item in items if is_hostile_file_test(item)]
    process = psutil.Process()
    descriptor_count, child_pids = process.num_fds(), {child.pid for child in process.children()}
    folder = tmp_path_factory.mktemp("temporary")
    with patch.object(tempfile, "tempdir", str(folder)):
        pool = OutcomePool(names)
        yield pool
        pool.executor.shutdown(cancel_futures=True)
    assert {child.pid for child in process.children()} <= child_pids
    assert process.num_fds() <= descriptor_count
    assert list(folder.iterdir()) == []


def is_hostile_file_test(item: Any) -> bool:
    return bool(getattr(item, "originalname", "") == test_hostile_file_ends_within_its_limits.__name__)


def test_there_are_enough_hostile_files():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_hostile_file_ends_within_its_limits(name: str, outcomes: OutcomePool):  # C17 C18 C19 C20 C21 C23
    outcome, duration_s = outcomes.futures[name].result()

    assert re.fullmatch(CASES[name].outcome, outcome), outcome
    assert duration_s < 30


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_hostile_file_ends_within_the_limits_of_production(name: str):  # C17 C20
    case = CASES[name]
    max_limits = {key: value for key, value in case.changed_limits.items() if key.startswith("max_")}
    outcome = outcome_of(case.build(), case.format, replace(configured_limits(), **max_limits))

    assert outcome == "text" or outcome in {
        "damaged", "encrypted", "limit_archive", "limit_cells", "limit_characters", "limit_memory", "limit_pages",
        "limit_time",
    }  # fmt: skip


def test_no_hostile_file_includes_a_local_file():  # C19
    """Files whose entities refer to a local file are read without the content of that file."""
    for name in ("docx: external entity", "pptx: external entity", "html: SVG with entities"):
        result = extract(CASES[name].build(), CASES[name].format, limits_for_tests())

        assert "kept" in result.text
        assert not LEAKED_PASSWD_LINE.search(result.text)


def test_bombs_exceed_the_limits():  # C17
    """With higher limits they are read, which shows that the limit causes the refusal."""
    bomb = CASES["docx: bomb by ratio"]
    with pytest.raises(UnreadableFile) as exc_info:
        extract(bomb.build(), "docx", limits_for_tests())
    assert exc_info.value.code == "limit_archive"

    higher_limits = limits_for_tests(archive_ratio=10**6, archive_bytes=100 * 1024 * 1024)
    assert extract(bomb.build(), "docx", higher_limits).text.startswith("Printers")
