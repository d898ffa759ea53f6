"""The child process that reads a file: its limits and how it ends."""

import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from collections_app.extract import UnreadableFile, child_process, extract
from collections_app.extract.file_formats import FORMATS
from collections_app.extract.parsers import program
from system.sandbox import process
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.extract.samples import SAMPLE_FILES, pdf_file

PARSERS_FOLDER = Path(program.__file__).parent


def parser_processes() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if str(PARSERS_FOLDER) in " ".join(child.cmdline())]


def test_parsers_import_nothing_of_the_product():
    script = (
        f"import sys, runpy; sys.path += {child_process.package_folders()!r}\n"
        f"load = runpy.run_path({str(PARSERS_FOLDER / 'program.py')!r}, run_name='program')['load_module']\n"
        f"for name in {[name for file_format in FORMATS.values() for name in file_format.parsers]}:\n"
        "    load(f'formats.{name}')\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('django', 'system', 'collections_app')])\n"
    )
    completed_process = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, env={}, text=True, timeout=60
    )

    assert completed_process.stdout.strip() == "[]", completed_process.stderr


def test_child_that_exceeds_its_time_limit_is_killed_with_its_group():  # C20
    started_at = time.monotonic()
    with pytest.raises(UnreadableFile) as exc_info:
        extract(SAMPLE_FILES["html"], "html", limits_for_tests(wall_s=0.05))

    assert exc_info.value.code == "limit_time"
    assert time.monotonic() - started_at < 5
    assert parser_processes() == []


def test_child_that_exceeds_its_memory_limit_ends():  # C20
    with pytest.raises(UnreadableFile) as exc_info:
        extract(("x" * 1000 + ",").encode("utf-16") * 20_000, "csv", limits_for_tests(memory_bytes=150 * 1024 * 1024))

    assert exc_info.value.code == "limit_memory"
    assert parser_processes() == []


def test_output_is_not_read_beyond_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # C20
    endless_program = tmp_path / "endless.py"
    endless_program.write_text("import sys\nsys.stdout.buffer.write(b'\\n' + (2**50).to_bytes(8, 'big'))\n"
                    "while True: sys.stdout.buffer.write(b'x' * 2**20)\n")  # fmt: skip
    monkeypatch.setattr(child_process, "PARSER_PROGRAM", endless_program)
    memory_before = psutil.Process().memory_info().rss

    with pytest.raises(UnreadableFile) as exc_info:
        extract(SAMPLE_FILES["pdf"], "pdf", limits_for_tests())

    assert exc_info.value.code == "limit_characters"
    assert psutil.Process().memory_info().rss - memory_before < 50 * 1024 * 1024


@pytest.mark.parametrize("script", ["", "import sys; sys.exit(3)", "print('hello')", "import sys; sys.stdin.close()"])
def test_invalid_output_counts_as_a_damaged_file(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "other.py").write_text(script)
    monkeypatch.setattr(child_process, "PARSER_PROGRAM", tmp_path / "other.py")

    with pytest.raises(UnreadableFile) as exc_info:
        extract(SAMPLE_FILES["docx"], "docx", limits_for_tests())
    assert exc_info.value.code in ("damaged", "limit_characters")


def test_many_files_are_read_concurrently():
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(extract(SAMPLE_FILES["pdf"], "pdf", limits_for_tests()).text))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert len(set(texts)) == 1 and len(texts) == 6
    assert parser_processes() == []


def test_file_of_the_maximum_size_is_read():
    largest_file = pdf_file(["words"]) + b"\n%" + b"x" * 32 * 1024 * 1024

    assert extract(largest_file, "pdf", limits_for_tests()).text == "words"


@pytest.mark.parametrize(
    ("script", "min_share", "is_temporary"),
    # Starting a child takes more than 0.01 s of processor time, even on a busy machine.
    [("import time; time.sleep(60)", process.MIN_CPU_SHARE, True), ("while True: pass", 0.01, False)],
)
def test_file_that_got_no_processor_time_may_be_retried(
    script: str, min_share: float, is_temporary: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "other.py").write_text(script)
    monkeypatch.setattr(child_process, "PARSER_PROGRAM", tmp_path / "other.py")
    monkeypatch.setattr(process, "MIN_CPU_SHARE", min_share)

    with pytest.raises(UnreadableFile) as exc_info:
        extract(SAMPLE_FILES["html"], "html", limits_for_tests(wall_s=1.0))
    # If the system does not report processor time, the file counts as too slow.
    assert (exc_info.value.code, exc_info.value.is_temporary) == (
        "limit_time",
        is_temporary and sys.platform == "linux",
    )
