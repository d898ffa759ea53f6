"""Adds office files to `hostile.ARCHIVES`: archive bombs, wrong sizes, entities, nesting."""

import stat
import struct
import zipfile
from collections.abc import Sequence
from functools import partial
from io import BytesIO

from tests.collections_app.extract.hostile import ARCHIVES, add_file, hostile_file
from tests.collections_app.extract.samples import SAMPLE_FILES, changed_archive, docx_file, entries_of

MB = 1024 * 1024
MAIN_PARTS = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/worksheets/sheet1.xml",
    "odt": "content.xml",
    "epub": "OEBPS/text/a.xhtml",
}
WORD_NAMESPACE = b'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET_NAMESPACE = b'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
BILLION_LAUGHS = b"<!DOCTYPE x [<!ENTITY a0 'lol lol'>%b]>" % b"".join(
    b"<!ENTITY a%d '%b'>" % (depth, b"&a%d;" % (depth - 1) * 10) for depth in range(1, 10)
)
EXTERNAL_ENTITY = b'<!DOCTYPE x [<!ENTITY a9 SYSTEM "file:///etc/passwd">]>'
EXTERNAL_DTD = b'<!DOCTYPE x SYSTEM "http://127.0.0.1:9/a.dtd" [<!ENTITY a9 "">]>'
PARAMETER_ENTITY = b'<!DOCTYPE x [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p; <!ENTITY a9 "">]>'
QUADRATIC_BLOWUP = b"<!DOCTYPE x [<!ENTITY b '%b'><!ENTITY a9 '%b'>]>" % (b"x" * 100_000, b"&b;" * 2000)
# Text that the result must contain, so that an empty result fails the test.
MARKER = b"kept"


def main_content(format: str, prolog: bytes, new_text: bytes) -> bytes:
    """The main entry of the sample, with `prolog` before its root element and `new_text` as part of its text."""
    with zipfile.ZipFile(BytesIO(SAMPLE_FILES[format])) as file:
        content = file.read(MAIN_PARTS[format])
    content = content[content.index(b"?>") + 2 :] if content.startswith(b"<?xml") else content
    sample_text = {
        "docx": b"They see.",
        "pptx": b"Faster answers",
        "xlsx": b"Riga",
        "odt": b"Call us",
        "epub": b"Hall",
    }[format]
    assert sample_text in content
    return b'<?xml version="1.0" encoding="UTF-8"?>' + prolog + content.replace(sample_text, new_text)


def with_main_content(format: str, prolog: bytes, new_text: bytes) -> bytes:
    return changed_archive(SAMPLE_FILES[format], {MAIN_PARTS[format]: main_content(format, prolog, new_text)})


for format in MAIN_PARTS:
    for name, prolog in {
        "billion laughs": BILLION_LAUGHS,
        "external entity": EXTERNAL_ENTITY,
        "external DTD": EXTERNAL_DTD,
        "parameter entity": PARAMETER_ENTITY,
        "quadratic blow up": QUADRATIC_BLOWUP,
    }.items():
        build = partial(with_main_content, format, prolog, MARKER + b"&a9;")
        add_file(ARCHIVES, format, name, build, "text|damaged|limit_.*")
    build_bomb = partial(with_main_content, format, b"", b" " * 12 * MB)
    add_file(ARCHIVES, format, "bomb by ratio", build_bomb, "limit_archive")
    add_file(ARCHIVES, format, "bomb by size", build_bomb, "limit_archive", archive_bytes=4 * MB, archive_ratio=10**6)
    build_truncated = partial(lambda format: SAMPLE_FILES[format][: len(SAMPLE_FILES[format]) // 2], format)
    add_file(ARCHIVES, format, "cut in half", build_truncated, "damaged")


def zip_of(entries: Sequence[tuple[zipfile.ZipInfo | str, bytes]], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for entry, content in entries:
            archive.writestr(entry, content, method)
    return file.getvalue()


def with_patched_headers(archive: bytes, name: str, *, local: dict[int, bytes], central: dict[int, bytes]) -> bytes:
    """The archive with bytes replaced at these offsets in the headers of an entry."""
    patched_archive = bytearray(archive)
    with zipfile.ZipFile(BytesIO(archive)) as file:
        local_offset = file.getinfo(name).header_offset
        directory_offset = file.start_dir
    for position, value in local.items():
        patched_archive[local_offset + position : local_offset + position + len(value)] = value
    central_offset = archive.index(name.encode(), directory_offset) - 46
    for position, value in central.items():
        patched_archive[central_offset + position : central_offset + position + len(value)] = value
    return bytes(patched_archive)


@hostile_file(ARCHIVES, "docx", "limit_archive")
def with_3000_entries() -> bytes:
    return changed_archive(docx_file(), {}, additions={f"word/media/{number}.png": b"" for number in range(3000)})


@hostile_file(ARCHIVES, "docx", "text")
def nested_bombs_that_are_never_read() -> bytes:
    inner_archive = zip_of([("bomb", b"\0" * 40 * MB)])
    return changed_archive(docx_file(), {}, additions={"word/embeddings/a.zip": zip_of([("b.zip", inner_archive)])})


@hostile_file(ARCHIVES, "docx", "damaged")
def understated_sizes() -> bytes:
    small_size = struct.pack("<L", 10)
    return with_patched_headers(docx_file(), "word/document.xml", local={22: small_size}, central={24: small_size})


@hostile_file(ARCHIVES, "docx", "damaged|text")
def overstated_sizes() -> bytes:
    large_size = struct.pack("<L", 2**31)
    return with_patched_headers(docx_file(), "word/document.xml", local={22: large_size}, central={24: large_size})


@hostile_file(ARCHIVES, "docx", "damaged")
def wrong_compressed_sizes() -> bytes:
    return with_patched_headers(docx_file(), "word/document.xml", local={18: b"\5\0\0\0"}, central={20: b"\5\0\0\0"})


@hostile_file(ARCHIVES, "docx", "limit_archive")
def bomb_with_an_understated_local_size() -> bytes:
    """Only the local header is wrong; the limit applies to the extracted size."""
    archive = changed_archive(docx_file(), {}, additions={"word/media/a.png": b"\0" * 12 * MB})
    return with_patched_headers(archive, "word/media/a.png", local={22: b"\1\0\0\0"}, central={})


@hostile_file(ARCHIVES, "docx", "limit_archive|damaged", archive_bytes=8 * MB)
def overlapping_entries() -> bytes:
    """One megabyte of content that is listed 300 times."""
    archive = changed_archive(docx_file(), {}, additions={"word/media/a.png": b"x" * MB})
    with zipfile.ZipFile(BytesIO(archive)) as file:
        directory_start = file.start_dir
        entry_count = len(file.infolist())
    directory, end_record = archive[directory_start : archive.rindex(b"PK\5\6")], archive[archive.rindex(b"PK\5\6") :]
    last_entry = directory[directory.rindex(b"PK\1\2") :]
    many_entries = directory + b"".join(last_entry.replace(b"a.png", b"%05d" % number) for number in range(300))
    totals = struct.pack("<HHLL", entry_count + 300, entry_count + 300, len(many_entries), directory_start)
    return archive[:directory_start] + many_entries + end_record[:8] + totals + end_record[20:]


@hostile_file(ARCHIVES, "docx", "text")
def symbolic_link() -> bytes:
    link = zipfile.ZipInfo("word/media/image1.png")
    link.create_system = 3
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return zip_of([*entries_of(docx_file()), (link, b"/etc/passwd")])


@hostile_file(ARCHIVES, "docx", "text|damaged")
def path_traversal_names() -> bytes:
    names = ["../../../etc/cron.d/x", "/etc/passwd", "C:\\x", "word/\u202egnp.exe"]
    return changed_archive(docx_file(), {}, additions=dict.fromkeys(names, b"x"))


@hostile_file(ARCHIVES, "docx", "encrypted")
def encrypted_entry() -> bytes:
    return with_patched_headers(docx_file(), "word/document.xml", local={6: b"\1\0"}, central={8: b"\1\0"})


@hostile_file(ARCHIVES, "docx", "damaged")
def bzip2_compression() -> bytes:
    return zip_of(entries_of(docx_file()), zipfile.ZIP_BZIP2)


@hostile_file(ARCHIVES, "docx", "damaged")
def lzma_compression() -> bytes:
    return zip_of(entries_of(docx_file()), zipfile.ZIP_LZMA)


@hostile_file(ARCHIVES, "docx", "damaged")
def wrong_directory_offset() -> bytes:
    archive = docx_file()
    end_record = archive.rindex(b"PK\5\6")
    return archive[: end_record + 16] + struct.pack("<L", 2**31) + archive[end_record + 20 :]


@hostile_file(ARCHIVES, "docx", "damaged")
def archive_without_entries() -> bytes:
    return zip_of([])


@hostile_file(ARCHIVES, "docx", "damaged")
def archive_without_its_document() -> bytes:
    return zip_of([entry for entry in entries_of(docx_file()) if entry[0] != "word/document.xml"])


@hostile_file(ARCHIVES, "docx", "damaged")
def renamed_workbook() -> bytes:
    return SAMPLE_FILES["xlsx"]


@hostile_file(ARCHIVES, "docx", "damaged|text")
def elements_100000_deep() -> bytes:
    nested_content = b"<w:sdt>" * 100_000 + b"</w:sdt>" * 100_000
    return changed_archive(
        docx_file(),
        {"word/document.xml": b"<w:document %b><w:body>%b</w:body></w:document>" % (WORD_NAMESPACE, nested_content)},
    )


@hostile_file(ARCHIVES, "docx", "damaged|text", archive_ratio=10**6)
def word_of_11_megabytes() -> bytes:
    document_template = b"<w:document %b><w:body><w:p><w:r><w:t>%b</w:t></w:r></w:p></w:body></w:document>"
    return changed_archive(docx_file(), {"word/document.xml": document_template % (WORD_NAMESPACE, b"x" * 11 * MB)})


@hostile_file(ARCHIVES, "docx", "text|damaged")
def remote_template() -> bytes:
    relationships = (
        b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" '
        b'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/attachedTemplate" '
        b'Target="http://127.0.0.1:9/x.dotm" TargetMode="External"/></Relationships>'
    )
    return changed_archive(
        docx_file(), {"word/_rels/settings.xml.rels": relationships}, additions={"word/_rels/more.rels": relationships}
    )


def workbook_with_sheet(rows: bytes, dimension: bytes = b"A1:B2") -> bytes:
    content = b'<worksheet %b><dimension ref="%b"/><sheetData>%b</sheetData></worksheet>' % (
        SHEET_NAMESPACE,
        dimension,
        rows,
    )
    return changed_archive(SAMPLE_FILES["xlsx"], {MAIN_PARTS["xlsx"]: content})


@hostile_file(ARCHIVES, "xlsx", "limit_cells", max_cells=20_000)
def endless_rows() -> bytes:
    return workbook_with_sheet(
        b"".join(b'<row r="%d"><c><v>%d</v></c></row>' % (number, number * 7919 % 1000) for number in range(1, 60_000))
    )


@hostile_file(ARCHIVES, "xlsx", "text")
def maximum_dimension() -> bytes:
    return workbook_with_sheet(b'<row r="1"><c r="A1" t="str"><v>kept</v></c></row>', b"A1:XFD1048576")


@hostile_file(ARCHIVES, "xlsx", "limit_cells|limit_time|damaged")
def row_number_two_billion() -> bytes:
    return workbook_with_sheet(b'<row r="2000000000"><c><v>1</v></c></row>')


@hostile_file(ARCHIVES, "xlsx", "damaged|text|limit_.*")
def column_out_of_range() -> bytes:
    return workbook_with_sheet(b'<row r="1"><c r="ZZZZZZZ1"><v>1</v></c></row>')


@hostile_file(ARCHIVES, "xlsx", "limit_.*|text", max_cells=20_000, cpu_s=1)
def wide_empty_rows() -> bytes:
    return workbook_with_sheet(
        b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (number, number) for number in range(1, 20_000))
    )


@hostile_file(ARCHIVES, "xlsx", "damaged|text")
def missing_shared_strings() -> bytes:
    return workbook_with_sheet(b'<row r="1"><c r="A1" t="s"><v>99999999</v></c></row>')


@hostile_file(ARCHIVES, "odt", "damaged|text")
def sections_10000_deep() -> bytes:
    content = main_content("odt", b"", b"kept")
    offset = content.index(b"<text:h ")
    nested_sections = b'<text:section text:name="a">' * 10_000 + b"</text:section>" * 10_000
    return changed_archive(SAMPLE_FILES["odt"], {"content.xml": content[:offset] + nested_sections + content[offset:]})


@hostile_file(ARCHIVES, "odt", "text")
def billion_spaces() -> bytes:
    content = main_content("odt", b"", b'kept<text:s text:c="1000000000"/>')
    return changed_archive(SAMPLE_FILES["odt"], {"content.xml": content})


@hostile_file(ARCHIVES, "odt", "encrypted")
def manifest_with_encryption() -> bytes:
    manifest = dict(entries_of(SAMPLE_FILES["odt"]))["META-INF/manifest.xml"]
    element = b'<manifest:encryption-data manifest:checksum="x"/></manifest:file-entry></manifest:manifest>'
    entry = b'<manifest:file-entry manifest:media-type="text/xml" manifest:full-path="x">'
    return changed_archive(
        SAMPLE_FILES["odt"],
        {"META-INF/manifest.xml": manifest.replace(b"</manifest:manifest>", entry + element), "content.xml": b"\1\2\3"},
    )


@hostile_file(ARCHIVES, "pptx", "damaged|text")
def groups_3000_deep() -> bytes:
    content = main_content("pptx", b"", b"kept")
    offset = content.index(b"<p:sp>")
    group_start = b'<p:grpSp><p:nvGrpSpPr><p:cNvPr id="9" name="g"/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    nested_groups = group_start * 3000 + b"</p:grpSp>" * 3000
    return changed_archive(
        SAMPLE_FILES["pptx"], {MAIN_PARTS["pptx"]: content[:offset] + nested_groups + content[offset:]}
    )


@hostile_file(ARCHIVES, "pptx", "limit_pages", max_pages=1)
def more_slides_than_allowed() -> bytes:
    return SAMPLE_FILES["pptx"]
