"""Good files with bytes flipped, pieces cut out and put in: by a fixed seed, so that a find can be repeated."""

import os
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.collections_app.extract.limits import limits, outcome
from tests.collections_app.extract.samples import FILES, changed, entries_of, pdf

CODES = {"damaged", "encrypted", "limit_archive", "limit_characters", "limit_memory", "limit_pages", "limit_time"}
SOME, MANY = range(10), range(10, 300)


def flipped(data: bytes, chance: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(chance.choice((1, 4, 32))):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return bytes(out)


def spliced(data: bytes, chance: random.Random) -> bytes:
    begin, end = sorted(chance.randrange(len(data)) for _ in range(2))
    at = chance.randrange(len(data))
    return data[:at] + data[begin:end] + data[at + chance.randrange(20) :]


def ruined(data: bytes, chance: random.Random) -> bytes:
    return (flipped if chance.random() < 0.7 else spliced)(data, chance)


def ruined_inside(archive: bytes, chance: random.Random) -> bytes:
    """One entry of an archive, so that the archive itself stays whole and the parser gets to see it."""
    name, content = chance.choice([each for each in entries_of(archive) if each[1]])
    return changed(archive, {name: ruined(content, chance)})


def ends(data: bytes, format: str) -> None:
    assert outcome(data, format, limits(cpu_s=4, wall_s=10.0)) in CODES | {"text"}


def test_flipping_makes_other_files():
    assert len({flipped(FILES["pdf"], random.Random(seed)) for seed in SOME}) > 5


@pytest.mark.parametrize("seed", SOME)
def test_a_pdf_with_wrong_bytes_ends(seed: int):  # C20 C21
    ends(ruined(pdf(["First page of many words", "Second"]), random.Random(seed)), "pdf")


@pytest.mark.parametrize("seed", SOME)
def test_a_docx_with_wrong_bytes_ends(seed: int):  # C17 C18
    chance = random.Random(seed)
    ends((ruined if seed % 3 == 0 else ruined_inside)(FILES["docx"], chance), "docx")


@pytest.mark.parametrize("format", sorted(set(FILES) - {"pdf", "docx"}))
def test_a_file_of_any_format_with_wrong_bytes_ends(format: str):
    ends(ruined(FILES[format], random.Random(format)), format)


@pytest.mark.nightly
@pytest.mark.parametrize("format", sorted(FILES))
def test_thousands_of_files_with_wrong_bytes_end(format: str):  # C20 C21

    def try_one(seed: int) -> None:
        chance = random.Random(f"{format} {seed}")
        is_archive = FILES[format].startswith(b"PK") and seed % 3
        ends((ruined_inside if is_archive else ruined)(FILES[format], chance), format)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(try_one, MANY))
