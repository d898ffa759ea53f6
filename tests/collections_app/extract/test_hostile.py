"""Hostile files: each ends as text or UnreadableFile, within its limits, and leaves nothing behind."""

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
from tests.collections_app.extract import hostile_archives, hostile_pdfs, hostile_texts  # noqa: F401  (they enter theirs)
from tests.collections_app.extract.hostile import ARCHIVES, PDFS, TEXTS, Case
from tests.collections_app.extract.limits import LEAKED, limits, outcome

CASES = ARCHIVES | PDFS | TEXTS


class Outcomes:
    """The outcomes and times of all cases, computed in parallel when the first is needed."""

    def __init__(self, names: Iterable[str]) -> None:
        self.pool = ThreadPoolExecutor(os.cpu_count())
        self.running = {name: self.pool.submit(self.find, CASES[name]) for name in names}

    @staticmethod
    def find(case: Case) -> tuple[str, float]:
        data, started_at = case.make(), time.monotonic()
        return outcome(data, case.format, limits(**case.limits)), time.monotonic() - started_at


@pytest.fixture(scope="module")
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outcomes]:
    """Afterwards there are no additional processes, descriptors or temporary files."""
    items: list[Any] = request.session.items
    result = [item.callspec.params["name"] for item in items if is_hostile(item)]
    me = psutil.Process()
    descriptors, children = me.num_fds(), {child.pid for child in me.children()}
    folder = tmp_path_factory.mktemp("temporary")
    with patch.object(tempfile, "tempdir", str(folder)):
        outcomes = Outcomes(result)
        yield outcomes
        outcomes.pool.shutdown(cancel_futures=True)
    assert {child.pid for child in me.children()} <= children
    assert me.num_fds() <= descriptors
    assert list(folder.iterdir()) == []


def is_hostile(item: Any) -> bool:
    return bool(getattr(item, "originalname", "") == test_hostile_file_ends_within_its_limits.__name__)


def test_there_are_enough_hostile_files():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_hostile_file_ends_within_its_limits(name: str, outcomes: Outcomes):  # C17 C18 C19 C20 C21 C23
    found, took_s = outcomes.running[name].result()

    assert re.fullmatch(CASES[name].outcome, found), found
    assert took_s < 30


@pytest.mark.nightly
@pytest.mark.parametrize("name", CASES)
def test_hostile_file_ends_within_the_limits_of_production(name: str):  # C17 C20
    case = CASES[name]
    request = {key: value for key, value in case.limits.items() if key.startswith("max_")}
    result = outcome(case.make(), case.format, replace(configured_limits(), **request))

    assert result == "text" or result in {
        "damaged", "encrypted", "limit_archive", "limit_cells", "limit_characters", "limit_memory", "limit_pages",
        "limit_time",
    }  # fmt: skip


def test_no_hostile_file_includes_a_local_file():  # C19
    """The entities that name a file exist, and the text next to them is read."""
    for name in ("docx: entity of a file", "pptx: entity of a file", "html: SVG with entities"):
        result = extract(CASES[name].make(), CASES[name].format, limits())

        assert "kept" in result.text
        assert not LEAKED.search(result.text)


def test_bombs_exceed_the_limits():  # C17
    """Without their limits they are read, so it is the limit that refuses them."""
    bomb = CASES["docx: bomb by ratio"]
    with pytest.raises(UnreadableFile) as exc_info:
        extract(bomb.make(), "docx", limits())
    assert exc_info.value.code == "limit_archive"

    allowed = limits(archive_ratio=10**6, archive_bytes=100 * 1024 * 1024)
    assert extract(bomb.make(), "docx", allowed).text.startswith("Printers")
