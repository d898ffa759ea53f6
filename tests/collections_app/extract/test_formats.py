"""The text extracted from valid files of each format."""

import codecs
import re
import time
import zipfile
from functools import cache
from io import BytesIO

import docx
import odf.text
import openpyxl
import pytest
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.packuri import PackURI
from docx.opc.part import Part
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from odf.opendocument import OpenDocumentText

from collections_app.extract import ExtractionResult, Heading, UnreadableFile, child_process, extract, recognize_format
from collections_app.extract.child_process import parse_output
from collections_app.extract.file_formats import FORMATS
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.extract.samples import (
    CSV,
    LOREM,
    MARKDOWN,
    RST,
    SAMPLE_FILES,
    changed_archive,
    entries_of,
    pdf_file,
    saved_bytes,
)

TEXTS = {
    "pdf": "First page\nof the report\n\nSecond page",
    "docx": "Printers\n\nBefore anything else, plug it in.\n\nPaper\n\n| Tray | Size |\n|---|---|\n| Two | A4 |\n\n"
    "Пожалуйста, не забывайте бумагу.\n\nScanners\n\nThey see.\n\n"
    "A header on every page\n\nA footer on every page",
    "pptx": "Goals\n\nFaster answers\n\nSay it slowly\n\nPlan\n\nBuy\nBuild\n\nCost | 12",
    "xlsx": "People\n\n| Name | City | Age |\n|---|---|---|\n| Ann | Riga | 41 |\n| Bob | Riga | 42 |\n\n"
    "Stock & more\n\n7 | screws | TRUE",
    "odt": "Leave\n\nEverybody has  thirty days.\n\nSick leave\n\nCall us\n\nSleep\n\nDoctor | Dr. Who",
    "epub": "The key\n\nIt was lost.\n\nRooms\n\n| Room | Floor |\n|---|---|\n| Hall | 1 |",
    "markdown": MARKDOWN,
    "rst": RST,
    "ipynb": "# Prices\nThey *rise*.\n\n```\nprint(2)\n2 + 3\n```\n\n```\n2\n```\n\n```\n5\n```\n\n"
    "## End\n\nThey fall.",
    "csv": "| Name | City | Note |\n|---|---|---|\n| Ann | Riga | two lines; one cell |\n| Bob | Oslo |  |",
    "eml": "Subject: Größe\nFrom: Ann <ann@example.com>\nTo: bob@example.com\nDate: Mon, 1 Jan 2024 10:00:00 +0000\n\n"
    "Привет, Боб.\n\nAttachments: plan.pdf",
    "zip": "docs/Übersicht.md\n\n# Guide\n\nText.\n\nreport.pdf\n\nPage of the report\n\nSecond page\n\n"
    "notes.txt\n\nA note.",
    "rtf": "Hello bold\nПривет",
    "text": "Just text. Größe.",
}
DOCX_MARGINS = "\n\nA header on every page\n\nA footer on every page"
HEADINGS = {
    "docx": [("Printers",), ("Printers", "Paper"), ("Scanners",)],
    "pptx": [("Goals",), ("Plan",)],
    "xlsx": [("People",), ("Stock & more",)],
    "odt": [("Leave",), ("Leave", "Sick leave")],
    "html": [("Guide",), ("Guide", "Second part")],
    "markdown": [("Guide",), ("Guide", "Set up"), ("Guide", "Second")],
    "rst": [("Guide",), ("Guide", "The set up")],
    "ipynb": [("Prices",), ("Prices", "End")],
    "eml": [("Größe",)],
    "epub": [("The key",), ("Rooms",)],
    "zip": [
        ("docs/Übersicht.md",),
        ("docs/Übersicht.md", "Guide"),
        ("report.pdf",),
        ("report.pdf", "Page 1"),
        ("report.pdf", "Page 2"),
        ("notes.txt",),
    ],
}


def extract_text(data: bytes | str, format: str) -> ExtractionResult:
    return extract(data.encode() if isinstance(data, str) else data, format, limits_for_tests())


@cache
def extract_sample(format: str) -> ExtractionResult:
    return extract_text(SAMPLE_FILES[format], format)


def test_every_format_has_an_expected_text():
    assert set(TEXTS) | {"html"} == set(FORMATS)  # HTML has its own tests


@pytest.mark.parametrize("format", TEXTS)
def test_text_of_a_valid_file_is_extracted(format: str):
    result = extract_sample(format)

    assert result.text == TEXTS[format]
    assert result.warnings == ()


@pytest.mark.parametrize("format", SAMPLE_FILES)
def test_headings_are_at_their_offsets(format: str):
    result = extract_sample(format)

    assert [heading.path for heading in result.headings] == HEADINGS.get(format, [])
    for heading in result.headings:
        text_at_heading = result.text[heading.offset :].removeprefix("Subject: ").lstrip("# ").replace(":ref:`", "")
        is_page = heading.path[-1] in ("Page 1", "Page 2")
        assert text_at_heading.startswith(heading.path[-1]) or is_page


@pytest.mark.parametrize("format", SAMPLE_FILES)
def test_each_parser_reads_its_format(format: str):
    """Without this test, a fallback could hide that the first parser cannot run in the sandbox."""
    for parser in FORMATS[format].parsers:
        output = child_process.run_parser(
            parser, SAMPLE_FILES[format], limits_for_tests(), deadline=time.monotonic() + 20
        )

        assert parse_output(output, 10**6).text.strip()


def test_pages_begin_at_their_text():
    result = extract_text(pdf_file(["One", "", "Three", ""]), "pdf")

    assert result.page_starts is not None
    assert [result.text[start : start + 5] for start in result.page_starts] == ["One\n\n", "Three", "Three", ""]
    assert extract_sample("pptx").page_starts == (0, 38)
    assert extract_sample("docx").page_starts is None


def test_file_without_text_has_pages():  # C23
    assert extract_text(pdf_file(["", ""]), "pdf") == ExtractionResult(
        text="", page_starts=(0, 0), headings=(), warnings=()
    )
    assert extract_text(saved_bytes(docx.Document().save), "docx").text == ""
    assert extract_text("\n \u200b\u2060 \ufeff\t", "text").text == ""
    assert extract_text("<html><body><script>x()</script></body></html>", "html").text == ""
    assert extract_text(b"", "text").text == ""


def test_html_is_reduced_to_its_article():
    text = extract_sample("html").text

    assert text.startswith("Guide\n\nThe quick") and "Größe." in text
    assert text.endswith("| Kind | Price |\n|---|---|\n| Small | 5 |")
    assert not any(word in text for word in ("Menu", "Imprint", "secret"))


def test_html_without_an_article_yields_all_visible_text():
    assert extract_text("<html><body><nav><a href=1>Only menu</a></nav></body></html>", "html").text == "Only menu"
    assert extract_text("just words", "html").text == "just words"


def test_declared_encoding_of_a_page_is_used():
    page = f"<html><head><meta charset='windows-1251'></head><body><p>{'Привет, мир. ' * 30}</p></body></html>"

    assert "Привет, мир. Привет" in extract_text(page.encode("cp1251"), "html").text


@pytest.mark.parametrize("format", ["html", "eml"])
def test_quotation_marks_of_windows_are_read_if_latin_1_is_declared(format: str):
    head = {
        "html": "<html><head><meta charset='ISO-8859-1'></head><body>",
        "eml": "Subject: Hi\nContent-Type: text/plain; charset=iso-8859-1\n\n",
    }[format]

    assert "“Größe” – 5 €" in extract_text(f"{head}“Größe” – 5 €".encode("cp1252"), format).text


def test_docx_text_includes_insertions_links_boxes_and_controls_but_no_deletions():
    document = docx.Document()
    paragraph_content = (
        "<w:r><w:t>plain </w:t></w:r><w:ins><w:r><w:t>inserted </w:t></w:r></w:ins>"
        "<w:del><w:r><w:delText>deleted </w:delText><w:t>gone </w:t></w:r></w:del>"
        "<w:hyperlink><w:r><w:t>link</w:t><w:tab/></w:r></w:hyperlink>"
        "<w:r><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:r>"
    )
    body = document.element.body
    body.insert(0, parse_xml(f"<w:p {nsdecls('w')}>{paragraph_content}</w:p>"))
    content_control = "<w:sdtContent><w:p><w:r><w:t>controlled</w:t></w:r></w:p></w:sdtContent>"
    body.insert(1, parse_xml(f"<w:sdt {nsdecls('w')}>{content_control}</w:sdt>"))

    assert extract_text(saved_bytes(document.save), "docx").text == "plain inserted link\t\n\nboxed\n\ncontrolled"


def test_headers_and_footers_of_a_docx_are_extracted_once():
    document = docx.Document()
    document.add_paragraph("Body")
    for number, text in enumerate(("Secret", "Secret", "Draft")):
        section = document.sections[0] if number == 0 else document.add_section()
        section.header.is_linked_to_previous = False
        section.header.paragraphs[0].text = text
        section.footer.is_linked_to_previous = False
        section.footer.paragraphs[0].text = f"- {number} -"

    assert extract_text(saved_bytes(document.save), "docx").text == "Body\n\nSecret\n\nDraft"


def test_notes_follow_the_text():
    note_xml = "<w:footnote><w:p><w:r><w:t>A note</w:t></w:r></w:p></w:footnote>"
    part_xml = f"<w:footnotes {nsdecls('w')}>{note_xml}</w:footnotes>".encode()
    document = docx.Document()
    document.add_paragraph("Body")
    part = Part(PackURI("/word/footnotes.xml"), "application/xml", part_xml, document.part.package)
    document.part.relate_to(part, RELATIONSHIP_TYPE.FOOTNOTES)
    assert extract_text(saved_bytes(document.save), "docx").text == "Body\n\nA note"

    odt = OpenDocumentText()
    paragraph = odf.text.P(text="Body")
    note, body = odf.text.Note(noteclass="footnote"), odf.text.NoteBody()
    body.addElement(odf.text.P(text="A note"))
    note.addElement(odf.text.NoteCitation(text="1"))
    note.addElement(body)
    paragraph.addElement(note)
    odt.text.addElement(paragraph)
    assert extract_text(saved_bytes(odt.write), "odt").text == "Body\n\nA note"


def test_damaged_header_of_a_docx_is_a_warning():
    result = extract_text(changed_archive(SAMPLE_FILES["docx"], {"word/header1.xml": b"<w:hdr"}), "docx")

    assert result.text == TEXTS["docx"].replace("\n\nA header on every page", "")
    assert result.warnings == ("The part word/header1.xml could not be read.",)


def test_formulas_of_a_docx_are_part_of_their_paragraph():
    formula = (
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><m:r><m:t>E=</m:t></m:r><m:f>'
        "<m:num><m:r><m:t>m</m:t></m:r></m:num><m:den><m:r><m:t>a+b</m:t></m:r></m:den></m:f></m:oMath>"
    )
    body = f"<w:p><w:r><w:t xml:space='preserve'>So </w:t></w:r>{formula}<w:r><w:t>.</w:t></w:r></w:p>"

    assert extract_text(docx_with_body(body), "docx").text.startswith("So E=m/(a+b).")


def test_table_without_a_header_has_an_empty_one():
    workbook = openpyxl.Workbook()
    for row in ([1, 2.5, "x"], [None, None, None], ["2024-05-01", None, 7]):
        workbook.active.append(row)

    assert extract_text(saved_bytes(workbook.save), "xlsx").text == (
        "Sheet\n\n|  |  |  |\n|---|---|---|\n| 1 | 2.5 | x |\n| 2024-05-01 |  | 7 |"
    )


def test_titles_empty_columns_and_bars_do_not_spoil_a_table():
    workbook = openpyxl.Workbook()
    for row in ([None, None], ["Stock 2024"], [None, "", "", None], ["Part", None, "2023", "2024"],
                ["a|b", None, 1, None], ["c\nd", None, None, 2]):  # fmt: skip
        workbook.active.append(row)

    assert extract_text(saved_bytes(workbook.save), "xlsx").text == (
        "Sheet\n\nStock 2024\n\n| Part | 2023 | 2024 |\n|---|---|---|\n| a\\|b | 1 |\n| c d |  | 2 |"
    )


def test_row_marked_as_header_in_docx_is_one_and_covered_columns_are_empty():
    rows = [
        "<w:tr><w:trPr><w:tblHeader/></w:trPr>" + docx_cell("No. 1") + docx_cell("2", span=2) + "</w:tr>",
        "<w:tr>" + "".join(map(docx_cell, ("a", "b", "c"))) + "</w:tr>",
    ]

    assert extract_text(docx_with_body(f"<w:tbl>{''.join(rows)}</w:tbl>"), "docx").text == (
        "| No. 1 | 2 |  |\n|---|---|---|\n| a | b | c |" + DOCX_MARGINS
    )


def docx_cell(text: str, *, span: int = 1) -> str:
    span_element = f'<w:tcPr><w:gridSpan w:val="{span}"/></w:tcPr>' if span > 1 else ""
    return f"<w:tc>{span_element}<w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"


def test_text_box_in_a_docx_cell_is_extracted_once():
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    fallback = (
        f'<mc:Fallback xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006">{box}</mc:Fallback>'
    )
    row = f"<w:tr>{docx_cell('a')}<w:tc><w:p><w:r>{box}{fallback}</w:r></w:p></w:tc></w:tr>"

    assert extract_text(docx_with_body(f"<w:tbl>{row * 2}</w:tbl>"), "docx").text.count("boxed") == 2


MAIL_TABLES = {
    "wide cells": ("<table><tr><th>Name<th colspan=2>Price<tr><td>a<td>1<td>2<tr><td colspan=2>b<td>3</table>",
                   "| Name | Price |  |\n|---|---|---|\n| a | 1 | 2 |\n| b |  | 3 |"),
    "wrong width": ("<table><tr><td colspan=many>one<td colspan>two<tr><td colspan=999999999>three<td>4</table>",
                    "| one | two |  |\n|---|---|---|\n| three |  | 4 |"),
    "data": ("<table><caption>Cap<tr><th>No.<th>5</tr><tr><td><p>a</p><p>b</p></td><td>6</table>end",
             "Cap\n\n| No. | 5 |\n|---|---|\n| a b | 6 |\n\nend"),
    "one column": ("<table><tr><td>one<tr><td>two</table>", "one\ntwo"),
    "layout": ("<table><tr><td>menu<td><h2>Head</h2>body<table><tr><td>x<td>y<tr><td>1<td>2</table>rest</table>end",
               "menu\n\nHead\n\nbody\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nrest\n\nend"),
    "not closed": ("<table><tr><td>one<td>two<tr><td>three<td>4", "| one | two |\n|---|---|\n| three | 4 |"),
    "stray cells": ("<td>one<tr><td>two", "one\n\ntwo"),
}  # fmt: skip


@pytest.mark.parametrize("name", MAIL_TABLES)
def test_tables_in_an_html_mail_are_markdown_unless_they_only_arrange_blocks(name: str):
    html, text = MAIL_TABLES[name]

    assert extract_text(f"Subject: Hi\nContent-Type: text/html\n\n{html}", "eml").text == f"Subject: Hi\n\n{text}"


DAMAGED_PARTS = {
    "xlsx": ("xl/worksheets/sheet2.xml", b'<c r="C1" t="b"><v>', b'<c r="C1" t="s"><v>9',
             "The sheet Stock & more could not be read from row 1 on."),
    "pptx": ("ppt/slides/slide1.xml", b'<p:cNvPr id="3" name="Content Placeholder 2"/>', b"",
             "Slide 1 could not be read completely."),
}  # fmt: skip


@pytest.mark.parametrize("format", DAMAGED_PARTS)
def test_sheet_or_slide_that_cannot_be_read_is_a_warning(format: str):
    part, valid, damaged, warning = DAMAGED_PARTS[format]
    content = dict(entries_of(SAMPLE_FILES[format]))[part]
    assert valid in content
    result = extract_text(changed_archive(SAMPLE_FILES[format], {part: content.replace(valid, damaged)}), format)

    assert result.warnings == (warning,)
    assert {"xlsx": "| Bob | Riga | 42 |", "pptx": "Buy\nBuild"}[format] in result.text


def test_sheet_is_read_to_its_end_regardless_of_its_declared_size():
    sheet = "xl/worksheets/sheet1.xml"
    with zipfile.ZipFile(BytesIO(SAMPLE_FILES["xlsx"])) as file:
        content = file.read(sheet)
    resized = content.replace(b'<dimension ref="A1:C3"', b'<dimension ref="A1:A1"')
    assert resized != content

    assert extract_text(changed_archive(SAMPLE_FILES["xlsx"], {sheet: resized}), "xlsx").text == TEXTS["xlsx"]


@pytest.mark.parametrize(("delimiter", "line_ending"), [(",", "\n"), (";", "\r\n"), ("\t", "\n"), ("|", "\r\n")])
def test_delimiter_of_a_csv_is_detected(delimiter: str, line_ending: str):
    rows = [["Name", "City", "Year"], ["Ann", "Riga", "1999"], ["Bob", "Oslo", "2001"]]
    csv_text = line_ending.join(delimiter.join(row) for row in rows)

    assert extract_text(csv_text, "csv").text.split("\n") == [
        "| Name | City | Year |", "|---|---|---|", "| Ann | Riga | 1999 |", "| Bob | Oslo | 2001 |",
    ]  # fmt: skip


def test_text_of_an_html_mail_is_extracted():
    mail = b"Subject: Hi\nContent-Type: text/html; charset=utf-8\n\n<p>Dear <b>Bob</b></p><p>Bye</p>"

    assert extract_text(mail, "eml").text == "Subject: Hi\n\nDear Bob\n\nBye"


def test_plain_text_of_a_multipart_mail_is_extracted():
    mail = (
        b'Subject: Hi\nContent-Type: multipart/alternative; boundary="b"\n\n'
        b"--b\nContent-Type: text/html\n\n<p>html</p>\n--b\nContent-Type: text/plain\n\nplain\n--b--\n"
    )

    assert extract_text(mail, "eml").text == "Subject: Hi\n\nplain"


def test_surrogate_pairs_in_rtf_are_joined():
    result = extract_text(rb"{\rtf1 \u-10179?\u-8704? and \u-10179? x}", "rtf")

    assert result.text == "😀 and  x"
    assert result.warnings == ("Unpaired surrogates were removed.",)


def test_nul_is_removed_with_a_warning():  # C23
    result = extract_text(f"{LOREM}NUL\0 is not text. " * 5, "text")

    assert result.text == f"{LOREM}NUL is not text. " * 5
    assert result.warnings == ("NUL characters were removed.",)


RUSSIAN = "Привет, мир. Это обычный русский текст о работе службы поддержки. Заявка закрыта."
WESTERN = "Le café est déjà fermé; où êtes-vous allés l'été dernier? El señor Muñoz llegó mañana. Größe der Straße."
JAPANESE = "これは日本語の文章です。検索のためのテスト文書で、漢字とひらがなが含まれています。"
CHINESE = "这是一个中文文档，用于测试检索功能。文件编码是国标。我们需要正确识别它。"
ENCODED_TEXTS = [
    *[(RUSSIAN, name) for name in ("utf-8", "cp1251", "koi8_r", "cp866", "iso8859_5")],
    *[(WESTERN, name) for name in ("utf-8", "latin-1", "cp1252")],
    *[(JAPANESE, name) for name in ("shift_jis", "euc_jp")],
    *[(CHINESE, name) for name in ("gb18030", "gb2312")],
    *[
        (text, name)
        for text in (RUSSIAN, WESTERN, JAPANESE + "\n", CHINESE + " 1\n2 ")
        for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig")
    ],
    ("Привет, как дела?", "cp1251"),
    ("Dziękuję bardzo, proszę zamknąć zgłoszenie. Zażółć gęślą jaźń.", "cp1250"),
    ("이것은 한국어 문서입니다. 검색 시험을 위한 것입니다.", "euc_kr"),
]


@pytest.mark.parametrize(("text", "encoding"), ENCODED_TEXTS)
def test_text_may_be_in_any_common_encoding(text: str, encoding: str):
    assert extract_text(text.encode(encoding), "text").text == text


def test_encoding_of_long_text_is_detected_from_its_beginning():
    text = RUSSIAN * 8000

    assert extract_text(text.encode("cp1251"), "text").text == text
    assert codecs.lookup("cp1251").name == "cp1251"


def test_csv_may_be_in_any_common_encoding():
    text = extract_text("Имя;Город\nАнна;Рига\nБорис;Осло\n".encode("cp1251"), "csv").text

    assert text == "| Имя | Город |\n|---|---|\n| Анна | Рига |\n| Борис | Осло |"


def test_messages_state_the_limits():
    for format, changed_limits, code in (
        ("pdf", {"max_pages": 1}, "limit_pages"),
        ("pptx", {"max_pages": 1}, "limit_pages"),
        ("xlsx", {"max_cells": 8}, "limit_cells"),
        ("csv", {"max_cells": 7}, "limit_cells"),
        *[(format, {"max_characters": 10}, "limit_characters") for format in ("pdf", "docx", "html", "text")],
    ):
        with pytest.raises(UnreadableFile) as exc_info:
            extract(SAMPLE_FILES[format], format, limits_for_tests(**changed_limits))
        assert exc_info.value.code == code, format
        assert str(*changed_limits.values()) in exc_info.value.message
    assert extract(SAMPLE_FILES["csv"], "csv", limits_for_tests(max_cells=8)).text == TEXTS["csv"]
    assert extract(CSV.encode(), "text", limits_for_tests(max_characters=len(CSV))).text == CSV


def test_output_of_the_child_is_validated():
    valid_output = b'{"text": "abc", "page_starts": [0, 1], "headings": [[0, 1, "a"]], "warnings": []}'
    assert parse_output(valid_output, 3).headings == (Heading(offset=0, path=("a",)),)

    for invalid_output in (
        b"", b"[]", b"{}", b"null", b'{"text": 5}',
        valid_output.replace(b"[0, 1]", b"[1, 0]"), valid_output.replace(b"[0, 1]", b"[0, 9]"),
        valid_output.replace(b"[0, 1]", b'["0"]'), valid_output.replace(b"[[0", b"[[-1"),
        valid_output.replace(b'"abc"', b'"abcd"'), valid_output[:-5],
    ):  # fmt: skip
        with pytest.raises(UnreadableFile) as exc_info:
            parse_output(invalid_output, 3)
        assert exc_info.value.code == "damaged"


def test_long_headings_are_truncated_only_in_the_heading_path():
    result = extract_text(f"# {LOREM * 5}\n\ntext", "markdown")

    assert len(result.headings[0].path[0]) == 200
    assert LOREM * 5 in result.text


# A character that is newer than the Unicode tables of Python, and a private-use character.
UNASSIGNED_CHARACTERS = {"a new emoji": "\U0001fae9", "an icon": "\uf8ff"}


@pytest.mark.parametrize("name", UNASSIGNED_CHARACTERS)
def test_unassigned_characters_are_valid_in_utf_8(name: str):
    symbol = UNASSIGNED_CHARACTERS[name]
    mail = f"Subject: one\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\nвход {symbol}\n"
    for byte_order_mark in ("", "\ufeff"):
        assert extract_text(byte_order_mark + f"日本 {symbol}", "text").text == f"日本 {symbol}"
        assert extract_text(byte_order_mark + f"имя;sign\nвход;{symbol}\n", "csv").text.endswith(
            f"| имя | sign |\n|---|---|\n| вход | {symbol} |"
        )
        assert (
            f"вход {symbol}"
            in extract_text(byte_order_mark + f"<html><body><p>вход {symbol}</p></body></html>", "html").text
        )
    assert f"вход {symbol}" in extract_text(mail, "eml").text


def test_control_characters_in_utf_8_are_refused():
    with pytest.raises(UnreadableFile):
        extract_text("a\1\2\3b", "text")


def nested_elements(start_tag: str, end_tag: str, depth: int, content: str = "deepest") -> str:
    return "".join(f"{start_tag}level {number} " for number in range(depth)) + content + end_tag * depth


@pytest.mark.parametrize("depth", [300, 5_000, 50_000])
@pytest.mark.parametrize("format", ["html", "eml"])
def test_elements_may_be_nested_to_any_depth_in_html(format: str, depth: int):
    page = f"<html><body>{nested_elements('<div>', '</div>', depth)}<p>after all</p></body></html>"
    mail_headers = "Subject: Hi\nFrom: a@b.example\nContent-Type: text/html\n\n" if format == "eml" else ""
    result = extract_text(mail_headers + page, format)

    assert f"level {depth - 1} deepest\n\nafter all" in result.text
    assert result.warnings == ()


def test_article_in_a_deeply_nested_page_is_complete():
    result = extract_text(
        f"<html><body><article><p>{LOREM * 4}</p></article>{nested_elements('<i>', '</i>', 400)}</body>", "html"
    )

    assert LOREM.strip() in result.text and result.text.endswith("level 399 deepest")


def docx_with_body(body: str) -> bytes:
    content = f"<w:document {nsdecls('w')}><w:body>{body}</w:body></w:document>"
    return changed_archive(SAMPLE_FILES["docx"], {"word/document.xml": content.encode()})


def test_tables_may_be_nested_in_docx():
    table_start = "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>level</w:t></w:r></w:p>"
    result = extract_text(docx_with_body(table_start * 200 + "</w:tc></w:tr></w:tbl>" * 200), "docx")

    assert result.text.count("level") == 200


def test_sections_may_be_nested_in_odt():
    section = '<text:section text:name="a">'
    content = dict(entries_of(SAMPLE_FILES["odt"]))["content.xml"].decode()
    head, body = content.split("<office:text>")
    nested = body.replace("</office:text>", "</text:section>" * 300 + "</office:text>", 1)
    result = extract_text(
        changed_archive(SAMPLE_FILES["odt"], {"content.xml": f"{head}<office:text>{section * 300}{nested}".encode()}),
        "odt",
    )

    assert result.text == TEXTS["odt"]


def test_file_nested_too_deeply_is_refused_with_the_reason():
    nested_controls = "<w:sdt>" * 3_000 + "</w:sdt>" * 3_000
    group_start = '<p:grpSp xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main">'
    slide = dict(entries_of(SAMPLE_FILES["pptx"]))["ppt/slides/slide1.xml"].decode()
    slide = slide.replace("</p:spTree>", group_start * 300 + "</p:grpSp>" * 300 + "</p:spTree>")
    for data, format in (
        (docx_with_body(nested_controls), "docx"),
        (changed_archive(SAMPLE_FILES["pptx"], {"ppt/slides/slide1.xml": slide.encode()}), "pptx"),
    ):
        with pytest.raises(UnreadableFile, match="nested too deeply"):
            extract_text(data, format)


def without_part(archive: bytes, name: str, *, is_referenced: bool) -> bytes:
    """The archive without a part; `is_referenced` keeps the relationships to it."""
    file = BytesIO()
    relationship = re.compile(rb'<Relationship [^>]*Target="[^"]*%b"[^>]*/>' % name.rpartition("/")[2].encode())
    with zipfile.ZipFile(file, "w") as new_archive:
        for entry, content in entries_of(archive):
            if entry != name:
                new_archive.writestr(
                    entry,
                    content if is_referenced or not entry.endswith(".rels") else relationship.sub(b"", content),
                )
    return file.getvalue()


@pytest.mark.parametrize("is_referenced", [False, True], ids=["no relationship", "relationship"])
@pytest.mark.parametrize("format", ["docx", "pptx", "xlsx", "odt"])
def test_optional_parts_may_be_missing(format: str, is_referenced: bool):
    optional_names = ("styles.xml", "settings.xml", "theme1.xml", "core.xml", "app.xml", "meta.xml", "numbering.xml",
             "sharedStrings.xml" if format != "xlsx" else "", "webSettings.xml", "fontTable.xml", "presProps.xml",
             "viewProps.xml", "tableStyles.xml", "header1.xml", "printerSettings1.bin", "thumbnail.jpeg")  # fmt: skip
    optional_parts = [name for name, _ in entries_of(SAMPLE_FILES[format]) if name.rpartition("/")[2] in optional_names]
    assert len(optional_parts) >= 2
    for name in optional_parts:
        text = extract_text(without_part(SAMPLE_FILES[format], name, is_referenced=is_referenced), format).text
        assert text == TEXTS[format].replace("\n\nA header on every page" * name.endswith("header1.xml"), ""), name


def test_without_styles_a_docx_has_no_headings():
    assert (
        extract_text(without_part(SAMPLE_FILES["docx"], "word/styles.xml", is_referenced=False), "docx").headings == ()
    )


@pytest.mark.parametrize("header", ["Subject", "To", "X-Filter", "Received", "References", "Content-Type"])
@pytest.mark.parametrize("position", ["first", "last"])
@pytest.mark.parametrize(
    "value",
    ["x" * 100_000, "a@b.example, " * 80_000, "a@b.example,\n " * 80_000 + "x"],
    ids=["one word", "words", "folded"],
)
def test_headers_of_an_email_may_be_long(header: str, position: str, value: str):
    long_header = f"{header}: {'text/plain; x=' if header == 'Content-Type' else ''}{value}"
    lines = [long_header, "From: ann@b.example", "Date: Mon, 1 Jan 2024 10:00:00 +0000"]
    data = "\n".join([*(lines if position == "first" else lines[::-1]), "", "The body."]).encode()

    assert recognize_format(data, "a.eml") == "eml"
    result = extract_text(data, "eml")
    assert result.text.endswith("The body.") and "From: ann@b.example" in result.text
    warning = f"Only the first 20,000 characters of the {header} header were kept."
    assert result.warnings == ((warning,) if header in ("Subject", "To") else ())
