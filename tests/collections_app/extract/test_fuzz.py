"""Valid files with flipped bytes and moved pieces, by a fixed seed so that a failure can be repeated."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.collections_app.extract.limits import limits, outcome
from tests.collections_app.extract.samples import FILES, changed, entries_of, pdf

CODES = {"damaged", "encrypted", "limit_archive", "limit_characters", "limit_memory", "limit_pages", "limit_time"}
SOME, MANY = range(10), range(10, 300)


def flipped(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 4, 32))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def spliced(data: bytes, rng: random.Random) -> bytes:
    begin, end = sorted(rng.randrange(len(data)) for _ in range(2))
    at = rng.randrange(len(data))
    return data[:at] + data[begin:end] + data[at + rng.randrange(20) :]


def corrupted(data: bytes, rng: random.Random) -> bytes:
    return (flipped if rng.random() < 0.7 else spliced)(data, rng)


def with_corrupted_entry(archive: bytes, rng: random.Random) -> bytes:
    """Corrupts one entry of an archive, so that the archive stays valid and the parser reads the entry."""
    name, content = rng.choice([entry for entry in entries_of(archive) if entry[1]])
    return changed(archive, {name: corrupted(content, rng)})


def assert_reading_ends(data: bytes, format: str) -> None:
    assert outcome(data, format, limits(cpu_s=4, wall_s=10.0)) in CODES | {"text"}


def test_flipping_changes_files():
    assert len({flipped(FILES["pdf"], random.Random(seed)) for seed in SOME}) > 5


@pytest.mark.parametrize("seed", SOME)
def test_reading_a_corrupted_pdf_ends(seed: int):  # C20 C21
    assert_reading_ends(corrupted(pdf(["First page of many words", "Second"]), random.Random(seed)), "pdf")


@pytest.mark.parametrize("seed", SOME)
def test_reading_a_corrupted_docx_ends(seed: int):  # C17 C18
    rng = random.Random(seed)
    assert_reading_ends((corrupted if seed % 3 == 0 else with_corrupted_entry)(FILES["docx"], rng), "docx")


@pytest.mark.parametrize("format", sorted(set(FILES) - {"pdf", "docx"}))
def test_reading_a_corrupted_file_of_any_format_ends(format: str):
    assert_reading_ends(corrupted(FILES[format], random.Random(format)), format)


@pytest.mark.nightly
@pytest.mark.parametrize("format", sorted(FILES))
def test_reading_thousands_of_corrupted_files_ends(format: str):  # C20 C21

    def try_one(seed: int) -> None:
        rng = random.Random(f"{format} {seed}")
        is_archive = FILES[format].startswith(b"PK") and seed % 3
        assert_reading_ends((with_corrupted_entry if is_archive else corrupted)(FILES[format], rng), format)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(try_one, MANY))
