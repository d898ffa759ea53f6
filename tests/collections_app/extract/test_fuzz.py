"""Valid files with flipped bytes and moved pieces; the seeds are fixed, so a failure can be repeated."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.collections_app.extract.limits import limits_for_tests, outcome_of
from tests.collections_app.extract.samples import SAMPLE_FILES, changed_archive, entries_of, pdf_file

EXPECTED_CODES = {
    "damaged",
    "encrypted",
    "limit_archive",
    "limit_characters",
    "limit_memory",
    "limit_pages",
    "limit_time",
}
FEW_SEEDS, MANY_SEEDS = range(10), range(10, 300)


def with_flipped_bytes(data: bytes, rng: random.Random) -> bytes:
    flipped_data = bytearray(data)
    for _ in range(rng.choice((1, 4, 32))):
        flipped_data[rng.randrange(len(flipped_data))] ^= 1 << rng.randrange(8)
    return bytes(flipped_data)


def with_moved_piece(data: bytes, rng: random.Random) -> bytes:
    start, stop = sorted(rng.randrange(len(data)) for _ in range(2))
    position = rng.randrange(len(data))
    return data[:position] + data[start:stop] + data[position + rng.randrange(20) :]


def corrupt_data(data: bytes, rng: random.Random) -> bytes:
    return (with_flipped_bytes if rng.random() < 0.7 else with_moved_piece)(data, rng)


def with_corrupted_entry(archive: bytes, rng: random.Random) -> bytes:
    """Corrupts one entry of an archive, so that the archive stays valid and the parser reads the entry."""
    name, content = rng.choice([entry for entry in entries_of(archive) if entry[1]])
    return changed_archive(archive, {name: corrupt_data(content, rng)})


def assert_reading_ends(data: bytes, format: str) -> None:
    assert outcome_of(data, format, limits_for_tests(cpu_s=4, wall_s=10.0)) in EXPECTED_CODES | {"text"}


def test_flipped_bytes_change_files():
    assert len({with_flipped_bytes(SAMPLE_FILES["pdf"], random.Random(seed)) for seed in FEW_SEEDS}) > 5


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_reading_a_corrupted_pdf_ends(seed: int):  # C20 C21
    assert_reading_ends(corrupt_data(pdf_file(["First page of many words", "Second"]), random.Random(seed)), "pdf")


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_reading_a_corrupted_docx_ends(seed: int):  # C17 C18
    rng = random.Random(seed)
    assert_reading_ends((corrupt_data if seed % 3 == 0 else with_corrupted_entry)(SAMPLE_FILES["docx"], rng), "docx")


@pytest.mark.parametrize("format", sorted(set(SAMPLE_FILES) - {"pdf", "docx"}))
def test_reading_a_corrupted_file_of_any_format_ends(format: str):
    assert_reading_ends(corrupt_data(SAMPLE_FILES[format], random.Random(format)), format)


@pytest.mark.nightly
@pytest.mark.parametrize("format", sorted(SAMPLE_FILES))
def test_reading_thousands_of_corrupted_files_ends(format: str):  # C20 C21

    def read_corrupted_file(seed: int) -> None:
        rng = random.Random(f"{format} {seed}")
        is_archive = SAMPLE_FILES[format].startswith(b"PK") and seed % 3
        assert_reading_ends((with_corrupted_entry if is_archive else corrupt_data)(SAMPLE_FILES[format], rng), format)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(read_corrupted_file, MANY_SEEDS))
