"""ZIP archives: each file is a section, and a file that cannot be read is a warning."""

import shutil
import stat
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from collections_app.extract import ExtractionLimits, ExtractionResult, UnreadableFile, extract, recognize_format
from collections_app.extract.zip_archive import extract_archive
from tests.collections_app.extract.hostile_archives import with_patched_headers, zip_of
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.extract.pdf_samples import paragraph, scanned_pdf
from tests.collections_app.extract.samples import FILENAMES, SAMPLE_FILES, epub_file, pdf_file, zip_file
from tests.collections_app.extract.test_formats import TEXTS, extract_text

NOTE = b"A note."


def test_files_of_all_formats_are_read_in_their_order():
    files = {f"{format}/{FILENAMES[format]}": data for format, data in SAMPLE_FILES.items() if format != "zip"}
    result = extract_text(zip_file(files), "zip")

    assert result.warnings == () and result.page_starts is None
    positions = [result.text.index(f"{name}\n\n") for name in files]
    assert positions == sorted(positions)
    for name in files:
        assert f"{name}\n\n{TEXTS.get(name.partition('/')[0], 'Guide')}" in result.text
    assert ("docx/a.docx", "Printers", "Paper") in {heading.path for heading in result.headings}


def test_page_is_a_heading_and_repeats_the_headings_that_apply():
    result = extract_text(zip_file({"a.pptx": SAMPLE_FILES["pptx"], "b.pdf": pdf_file(["One", "", "Three"])}), "zip")

    assert [(heading.path, result.text[heading.offset :][:5]) for heading in result.headings] == [
        (("a.pptx",), "a.ppt"),
        (("a.pptx", "Page 1"), "Goals"),
        (("a.pptx", "Page 1", "Goals"), "Goals"),
        (("a.pptx", "Page 2"), "Plan\n"),
        (("a.pptx", "Page 2", "Goals"), "Plan\n"),
        (("a.pptx", "Page 2", "Plan"), "Plan\n"),
        (("b.pdf",), "b.pdf"),
        (("b.pdf", "Page 1"), "One\n\n"),
        (("b.pdf", "Page 3"), "Three"),
    ]


def with_encrypted_entry(archive: bytes, name: str) -> bytes:
    return with_patched_headers(archive, name, local={6: b"\1\0"}, central={8: b"\1\0"})


def test_each_file_that_cannot_be_read_is_named_with_the_reason():
    link = zipfile.ZipInfo("link.txt")
    link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    entries: list[tuple[zipfile.ZipInfo | str, bytes]] = [
        ("note.txt", NOTE), ("picture.png", b"\x89PNG\r\n\x1a\n\0\0"), ("fake.pdf", b"<html><p>x"), ("empty.txt", b""),
        ("broken.pdf", b"%PDF-1.7 broken"), ("inner.zip", zip_file({"a.txt": NOTE})), ("blank.pdf", pdf_file([""])),
        (link, b"/etc/passwd"), ("secret.txt", NOTE), ("folder/", b""), ("__MACOSX/._note.txt", b"\0\1"),
        (".DS_Store", b"\0"), ("odd.txt", b"a\0\0"), ("last.md", b"# Last\n\nText."),
    ]  # fmt: skip
    result = extract_text(with_encrypted_entry(zip_of(entries), "secret.txt"), "zip")

    assert result.text == "note.txt\n\nA note.\n\nlast.md\n\n# Last\n\nText."
    reasons = dict(warning.split(": ", 1) for warning in result.warnings)
    assert list(reasons) == [
        "picture.png", "fake.pdf", "empty.txt", "broken.pdf", "inner.zip", "blank.pdf", "link.txt", "secret.txt",
        "odd.txt",
    ]  # fmt: skip
    assert reasons["picture.png"].startswith("The extension .png is not accepted.")
    assert reasons["fake.pdf"] == "The file has the extension .pdf, but its content is HTML."
    assert reasons["empty.txt"] == "The file is empty."
    assert reasons["broken.pdf"].startswith("The file is damaged")
    assert reasons["inner.zip"] == "Archives within an archive are not read."
    assert reasons["blank.pdf"] == "No text was found."
    assert reasons["link.txt"] == "Links are not followed."
    assert reasons["secret.txt"].startswith("The file is password-protected.")


def test_scanned_pages_are_named():
    scans = scanned_pdf([paragraph("One"), None, paragraph("Three")], resolution=20)
    result = extract_text(zip_file({"a.txt": NOTE, "scan.pdf": scans}), "zip")

    assert "A page that was typed" in result.text
    assert result.warnings == ("scan.pdf: Scans in archives are not read: pages 1, 3.",)


def test_there_are_at_most_100_warnings():
    files = {f"{number}.png": b"x" for number in range(150)} | {"a.txt": NOTE}
    warnings = extract_text(zip_file(files), "zip").warnings

    assert len(warnings) == 100 and warnings[-1] == "There are 51 more warnings."


def test_archive_of_which_no_file_can_be_read_is_refused():
    encrypted_archive = with_encrypted_entry(zip_file({"a.txt": NOTE}), "a.txt")
    for data, code, message in (
        (encrypted_archive, "encrypted", "password-protected"),
        (zip_file({"a.png": b"x"}), "unsupported", "The extension .png is not accepted"),
        (zip_file({"a.png": b"x", "b.zip": zip_file({})}), "damaged", "None of the 2 files in the archive can be read"),
        (zip_file({"a.txt": NOTE})[:-30], "damaged", "cannot be opened as an archive"),
    ):
        with pytest.raises(UnreadableFile, match=message) as exc_info:
            extract_text(data, "zip")
        assert exc_info.value.code == code


def test_archive_without_files_has_no_text():
    assert recognize_format(zip_file({}), "a.zip") == "zip"
    assert extract_text(zip_file({}), "zip").text == ""


def test_limits_apply_to_all_files_together():
    pdfs = {f"{number}.pdf": pdf_file(["One", "Two"]) for number in range(3)}
    texts = {f"{number}.txt": b"x" * 600 for number in range(3)}
    bomb = {"a.txt": NOTE} | {f"{number}.txt": b" " * 4 * 1024 * 1024 for number in range(4)}
    for files, limits, code in (
        (pdfs, {"max_pages": 5}, "limit_pages"),
        (texts, {"max_characters": 1800}, "limit_characters"),
        (bomb, {}, "limit_archive"),
        (bomb, {"archive_bytes": 10 * 1024 * 1024, "archive_ratio": 10**6}, "limit_archive"),
        (texts, {"archive_entries": 2}, "limit_archive"),
        (texts, {"wall_s": -1.0}, "limit_time"),
    ):
        with pytest.raises(UnreadableFile) as exc_info:
            extract(zip_file(files), "zip", limits_for_tests(**limits))
        assert exc_info.value.code == code


def test_files_behind_a_slow_one_do_not_fill_the_memory():
    later_files = []

    def extract_file(data: bytes, format: str, limits: ExtractionLimits) -> ExtractionResult:
        if data == b"slow":
            time.sleep(0.3)
        else:
            later_files.append(data)
        return ExtractionResult(text="x" * 600, page_starts=None, headings=(), warnings=())

    archive = zip_file({"slow.txt": b"slow"} | {f"{number}.txt": NOTE for number in range(50)})
    with pytest.raises(UnreadableFile) as exc_info:
        extract_archive(archive, limits_for_tests(max_characters=1000), extract_file)
    assert exc_info.value.code == "limit_characters" and len(later_files) <= 3


def test_path_is_only_a_label(tmp_path: Path):
    name = "../../" * 8 + str(tmp_path).lstrip("/") + "/written.txt"
    result = extract_text(zip_file({name: NOTE, "a\u202eb\n.txt": NOTE}), "zip")

    assert "A note." in result.text and "\u202e" not in result.text
    assert not list(tmp_path.iterdir())


def test_names_in_the_encoding_of_another_system_are_decoded():
    archive = zip_file({"1" * 25 + ".txt": NOTE, "2" * 13 + ".txt": NOTE})
    for placeholder, name in ((b"1" * 25, "Договор с поставщиком дел"), (b"2" * 13, "Список заявок")):
        archive = archive.replace(placeholder, name.encode("cp866"))

    text = extract_text(archive, "zip").text
    assert text == "Договор с поставщиком дел.txt\n\nA note.\n\nСписок заявок.txt\n\nA note."


@pytest.mark.skipif(shutil.which("zip") is None, reason="zip is not installed")
def test_archive_of_the_zip_program_is_read(tmp_path: Path):
    for name, content in {"Straße/Größe.txt": NOTE, "b.md": b"# B"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    subprocess.run(["zip", "-qr", "-e", "-P", "x", "locked.zip", "b.md"], cwd=tmp_path, check=True)
    subprocess.run(["zip", "-qr", "all.zip", "Straße", "b.md"], cwd=tmp_path, check=True)

    result = extract_text((tmp_path / "all.zip").read_bytes(), "zip")
    assert result.text == "Straße/Größe.txt\n\nA note.\n\nb.md\n\n# B"
    with pytest.raises(UnreadableFile, match="password-protected"):
        extract_text((tmp_path / "locked.zip").read_bytes(), "zip")


def test_missing_chapter_of_a_book_is_a_warning_and_an_encrypted_one_a_refusal():
    result = extract_text(epub_file({"a.xhtml": "<p>One</p>", "b.xhtml": ""}), "epub")
    assert (result.text, result.warnings) == ("One", ("The chapter OEBPS/text/b.xhtml could not be read.",))

    def encrypted_book(name: str) -> bytes:
        reference = f'<CipherReference xmlns="http://www.w3.org/2001/04/xmlenc#" URI="{name}"/>'
        return epub_file({"a.xhtml": "<p>One</p>"}, additions={"META-INF/encryption.xml": reference.encode()})

    assert extract_text(encrypted_book("OEBPS/fonts/a.otf"), "epub").text == "One"
    with pytest.raises(UnreadableFile, match="password-protected"):
        extract_text(encrypted_book("OEBPS/text/a.xhtml"), "epub")
