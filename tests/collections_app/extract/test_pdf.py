"""What is read from PDF files beside their text: headings, labels, tables; and what is left out."""

import time

import pytest

from collections_app.extract import ExtractionResult, child_process
from collections_app.extract.parsers.common.text_writer import TextWriter
from collections_app.extract.parsers.pdf.lines import Document, Line, Page
from collections_app.extract.parsers.pdf.pages import write_document
from tests.collections_app.extract.limits import limits_for_tests
from tests.collections_app.extract.pdf_samples import PlacedText, glyph_pdf, paragraph, placed_pdf, scanned_pdf
from tests.collections_app.extract.samples import pdf_file

PARSERS = ["pdf_by_pdfium", "pdf_by_pypdf"]
PROSE = [
    "The printers of the second floor are serviced twice a year by the supplier, who also brings the toner.",
    "Whoever finds that a printer does not work as expected should tell the service desk, which orders help.",
]


def read(data: bytes, parser: str = "pdf_by_pdfium") -> ExtractionResult:
    output = child_process.run_parser(parser, data, limits_for_tests(), deadline=time.monotonic() + 20)
    return child_process.parse_output(output, 10**6)


def headings(result: ExtractionResult) -> list[tuple[str, ...]]:
    return [heading.path for heading in result.headings]


class TestHeadings:
    def test_large_type_makes_headings_by_size(self):
        page: list[PlacedText] = [
            (72, 740, 20, "The manual"), (72, 714, 20, "of printers"), (72, 690, 14, "Paper"),
            *paragraph(*PROSE * 3, top=670), (72, 560, 14, "Toner"), *paragraph(*PROSE, top=540),
        ]  # fmt: skip
        result = read(placed_pdf([page]))

        assert headings(result) == [
            ("The manual of printers",), ("The manual of printers", "Paper"), ("The manual of printers", "Toner"),
        ]  # fmt: skip
        assert [result.text[heading.offset :][:3] for heading in result.headings] == ["The", "Pap", "Ton"]

    def test_large_initial_and_text_in_large_type_are_no_headings(self):
        initial = placed_pdf([[(72, 700, 30, "T"), (95, 700, 10, "he printers"), *paragraph(*PROSE, top=680)]])
        poster = placed_pdf([[*paragraph(*PROSE, size=20), *paragraph("Small print", top=100)]])

        assert headings(read(initial)) == headings(read(poster)) == []

    @pytest.mark.parametrize("parser", PARSERS)
    def test_outline_makes_headings(self, parser: str):
        pages = [[(72.0, 740.0, 10.0, title), *paragraph(*PROSE)] for title in ("1 Paper", "2 Toner", "Else")]
        result = read(placed_pdf(pages, outline=[("Paper", 1), ("Toner", 2), ("Not printed", 3)]), parser)

        assert headings(result) == [("1 Paper",), ("2 Toner",), ("Not printed",)]
        assert result.text[result.headings[1].offset :].startswith("2 Toner\n\nThe printers")
        assert result.text[result.headings[2].offset :].strip().startswith("Else")

    @pytest.mark.parametrize("parser", PARSERS)
    def test_entry_without_a_title_is_no_heading(self, parser: str):
        pages = [[(72.0, 740.0, 10.0, title), *paragraph(*PROSE)] for title in ("Paper", "Toner")]
        result = read(placed_pdf(pages, outline=[("Paper", 1), ("Toner", 2), (" ", 2)]), parser)

        assert headings(result) == [("Paper",), ("Toner",)]

    def test_heading_of_the_outline_is_not_the_running_head(self):
        page = [
            (72.0, 760.0, 8.0, "Toner"),
            *paragraph(*PROSE, top=740),
            (72.0, 500.0, 14.0, "Toner"),
            *paragraph(*PROSE, top=480),
        ]
        result = read(placed_pdf([page], outline=[("Toner", 1), ("Other", 1)]))

        assert result.text[: result.headings[-1].offset].count("printers") == 1


class TestRunningLines:
    @pytest.mark.parametrize("parser", PARSERS)
    def test_repeated_heads_and_page_numbers_are_left_out(self, parser: str):
        pages = []
        for number, word in enumerate(("one", "two", "three", "four"), 3):
            body = paragraph(f"Text {word} with words", PROSE[0])
            pages.append([(72.0, 770.0, 8.0, "Annual report"), *body, (300.0, 20.0, 8.0, f"Page {number} of 9")])

        text = read(placed_pdf(pages), parser).text
        assert "Annual" not in text and "Page" not in text
        assert text.count(PROSE[0]) == 4 and "Text three with words" in text

    def test_page_number_beside_changing_titles_is_recognized(self):
        titles = ("12 Printers", "Scanners 13", "14 Screens", "Keyboards 15")
        pages = [[(72.0, 770.0, 8.0, title), *paragraph(*PROSE)] for title in titles]

        assert not any(title in read(placed_pdf(pages)).text for title in titles)

    def test_rows_of_a_table_are_no_running_lines(self):
        pages = [paragraph(*(f"{page * 7 + row} {row * 31 + page * page}" for row in range(7))) for page in range(5)]

        assert len(read(placed_pdf(pages)).text.split()) == 5 * 7 * 2

    @pytest.mark.parametrize("parser", PARSERS)
    def test_lines_of_equal_pages_remain(self, parser: str):
        assert read(placed_pdf([[(72.0, 770.0, 10.0, "Ticket")]] * 4), parser).text.count("Ticket") == 4

    def test_lines_on_two_pages_and_titles_in_large_type_remain(self):
        two_pages = [[(72.0, 770.0, 10.0, "Annual report"), *paragraph(*PROSE)]] * 2
        slides = [[(72.0, 740.0, 24.0, "Agenda"), *paragraph(*PROSE)]] * 4

        assert read(placed_pdf(two_pages)).text.count("Annual report") == 2
        assert read(placed_pdf(slides)).text.count("Agenda") == 4


class TestHyphens:
    @pytest.mark.parametrize("parser", PARSERS)
    def test_hyphens_of_compounds_remain(self, parser: str):
        lines = [
            "We train a dual-",
            "encoder with infor-",
            "mation about COVID-",
            "19. Every dual-encoder is a",
            "state-of-the-",
            "art model of the art-",
            "ificial kind.",
        ]
        text = read(placed_pdf([paragraph(*lines)]), parser).text

        assert " ".join(text.split()) == (
            "We train a dual-encoder with information about COVID-19. Every dual-encoder is a state-of-the-art model "
            "of the artificial kind."
        )


def test_ligatures_in_arabic_are_in_order():
    visual_order = ["ة", "ي", "م", "لا", "س", "لإ", "ا"]
    assert read(glyph_pdf(visual_order)).text == "الإسلامية"
    assert read(glyph_pdf(["ﺔ", "ﻴ", "ﻣ", "ﻼ", "ﺳ", "ﻹ", "ﺍ"])).text == "الإسلامية"
    assert read(glyph_pdf(["ﺔ", "ﻴ", "ﻣ", "ﻼ", "ﺳ", "ﻹ", "ﺍ"]), "pdf_by_pypdf").text == "الإسلامية"


@pytest.mark.parametrize("parser", PARSERS)
def test_labels_of_pages_are_read(parser: str):
    pages = [paragraph(f"Page with {word}") for word in ("ink", "toner", "paper")]
    labels = b"0<</S/r>> 1<</S/D/P(A-)>>"

    assert read(placed_pdf(pages, labels=labels), parser).page_labels == ("i", "A-1", "A-2")
    assert read(placed_pdf(pages), parser).page_labels is None
    assert read(placed_pdf(pages, labels=b"0<</S/D>>"), parser).page_labels is None


def table(*rows: tuple[str, ...], lefts: tuple[float, ...] = (72, 200, 300), top: float = 500) -> list[PlacedText]:
    return [
        (left, top - 15 * number, 10, cell)
        for number, row in enumerate(rows)
        for left, cell in zip(lefts, row, strict=True)
        if cell
    ]


class TestTables:
    def test_cells_in_columns_become_a_table(self):
        rows = [("Item", "Price", "Stock"), ("Printer", "200", "7"), ("Scanner", "", "12"), ("Screen", "99.50", "3")]
        page = [*paragraph(*PROSE), *table(*rows), *paragraph(*PROSE, top=400)]
        body = "| Printer | 200 | 7 |\n| Scanner |  | 12 |\n| Screen | 99.50 | 3 |"
        markdown = f"| Item | Price | Stock |\n|---|---|---|\n{body}"

        assert read(placed_pdf([page])).text == "\n\n".join(["\n".join(PROSE), markdown, "\n".join(PROSE)])

    def test_table_may_have_cells_with_several_lines(self):
        page: list[PlacedText] = [
            *table(("Task", "Who", "Remarks"), top=600),
            (72, 580, 10, "Order the paper"), (72, 568, 10, "for all printers"), (200, 580, 10, "Ann"),
            (300, 580, 10, "twice a"), (300, 568, 10, "year"),
            *table(("Clean", "Bob", "often"), top=550),
        ]  # fmt: skip

        assert (
            "| Order the paper for all printers | Ann | twice a year |\n| Clean | Bob | often |"
            in read(placed_pdf([page])).text
        )

    def test_table_that_continues_on_the_next_page_gets_its_header_again(self):
        first = table(("Item", "Price", "Stock"), ("Printer", "200", "7"), ("Scanner", "150", "12"))
        second = table(("Screen", "99", "3"), ("Mouse", "20", "40"), top=740)
        text = read(placed_pdf([first, second])).text

        assert text.count("| Item | Price | Stock |\n|---|---|---|\n") == 2
        assert text.endswith("|---|---|---|\n| Screen | 99 | 3 |\n| Mouse | 20 | 40 |")

    def test_columns_of_prose_and_lists_are_no_tables(self):
        words = [f"line {number} of a column with words" for number in range(12)]
        columns = [*paragraph(*words), *paragraph(*words, left=320)]
        numbered = [(72.0, 700 - 15.0 * n, 10.0, f"{n}.") for n in range(1, 6)]
        bullets: list[PlacedText] = [
            text for n in range(1, 6) for text in (numbered[n - 1], (100.0, 700 - 15.0 * n, 10.0, "a thing to do"))
        ]

        assert read(placed_pdf([columns])).text == "\n".join(words * 2)
        assert "|" not in read(placed_pdf([bullets])).text


class TestUnreadPages:
    def test_scanned_pages_are_named(self):
        result = read(scanned_pdf([paragraph("Scanned words"), None, paragraph("Others")], resolution=50))

        assert result.scanned_pages == (1, 3)
        assert result.text == "A page that was typed"

    def test_line_that_a_library_added_to_each_scan_is_left_out(self):
        line = "Downloaded from the library of the university"
        writer = TextWriter(1000)
        pages = [Page([Line(line, from_bottom=700.0)], label=str(number), has_image=True) for number in range(1, 4)]
        write_document(Document(pages), writer)

        assert writer.scanned_pages == [1, 2, 3] and writer.result()["text"] == ""

    def test_empty_pages_are_no_scans(self):
        assert read(pdf_file(["", "text"])).scanned_pages == ()

    def test_pages_that_cannot_be_read_are_named(self):
        pages = [Page([Line("Text")], label=str(number)) for number in range(1, 7)]
        for number in (2, 4, 5):
            pages[number - 1] = Page([], label=str(number), is_readable=False)
        writer = TextWriter(1000)
        write_document(Document(pages), writer)

        assert writer.warnings == ["3 of 6 pages could not be read: pages 2, 4-5."]
