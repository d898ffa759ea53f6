"""Adds PDF files to `hostile.PDFS`: endless trees, bombs, wrong sizes, scripts."""

import zlib
from functools import partial
from io import BytesIO

import pypdf

from tests.collections_app.extract.hostile import PDFS, add_file, hostile_file
from tests.collections_app.extract.samples import SAMPLE_FILES, pdf_file, pdf_of, pdf_stream

MB = 1024 * 1024
CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
PAGE_CONTENT = b"BT /F1 10 Tf 40 700 Td (kept) Tj ET"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 4 0 R>>%b>>/Contents 5 0 R>>"


def one_page(
    *further_objects: bytes, content: bytes = pdf_stream(PAGE_CONTENT), resources: bytes = b"", font: bytes = FONT
) -> bytes:
    """A page (object 3) with a font (4) and a content stream (5); further objects start at 6."""
    pages = b"<</Type/Pages/Count 1/Kids[3 0 R]>>"
    return pdf_of([CATALOGUE, pages, PAGE % resources, font, content, *further_objects])


def deflated_bomb(megabytes: int) -> bytes:
    """Spaces that inflate to this many megabytes, compressed from a single block."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(b" " * MB) + compressor.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * megabytes + b"\3\0" + b"\0" * 4


def deflated_stream(content: bytes, entries: bytes = b"") -> bytes:
    return pdf_stream(zlib.compress(content, 9), b"/Filter/FlateDecode" + entries)


@hostile_file(PDFS, "pdf", "text|damaged")
def self_containing_pages() -> bytes:
    return pdf_of(
        [CATALOGUE, b"<</Type/Pages/Count 5/Kids[2 0 R 2 0 R 3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)]
    )


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def circular_pages() -> bytes:
    upper_node = b"<</Type/Pages/Count 9/Kids[3 0 R]/Parent 3 0 R>>"
    lower_node = b"<</Type/Pages/Count 9/Kids[2 0 R 4 0 R]/Parent 2 0 R>>"
    return pdf_of([CATALOGUE, upper_node, lower_node, b"<</Type/Page/Parent 3 0 R>>"])


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def pages_20000_deep() -> bytes:
    levels = [
        b"<</Type/Pages/Count 1/Kids[%d 0 R]/Parent %d 0 R>>" % (number + 1, number - 1) for number in range(2, 20_000)
    ]
    return pdf_of([CATALOGUE, *levels, b"<</Type/Page/MediaBox[0 0 9 9]/Parent 19999 0 R>>"])


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def arrays_200000_deep() -> bytes:
    return one_page(b"[" * 200_000 + b"]" * 200_000, resources=b"/XObject 6 0 R")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def dictionaries_100000_deep() -> bytes:
    return one_page(b"<</a" * 100_000 + b" 1" + b">>" * 100_000, resources=b"/ExtGState 6 0 R")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def content_100000_deep() -> bytes:
    return one_page(content=pdf_stream(b"[" * 100_000 + b"q " * 100_000 + PAGE_CONTENT))


@hostile_file(PDFS, "pdf", "limit_pages")
def hundred_thousand_pages() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count 100000/Kids[%b]>>" % (b"3 0 R " * 100_000), PAGE % b"", FONT,
                   pdf_stream(PAGE_CONTENT)])  # fmt: skip


@hostile_file(PDFS, "pdf", "limit_pages|text|damaged")
def page_count_of_two_billion() -> bytes:
    return pdf_of(
        [CATALOGUE, b"<</Type/Pages/Count 2000000000/Kids[3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)]
    )


@hostile_file(PDFS, "pdf", "text|damaged")
def negative_page_count() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count -5/Kids[3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)])


@hostile_file(PDFS, "pdf", "text")
def wrong_xref() -> bytes:
    return SAMPLE_FILES["pdf"].replace(b" 00000 n", b" 00003 n").replace(b"startxref\n", b"startxref\n9")


@hostile_file(PDFS, "pdf", "text|damaged")
def missing_xref() -> bytes:
    return SAMPLE_FILES["pdf"][: SAMPLE_FILES["pdf"].index(b"xref\n0")]


@hostile_file(PDFS, "pdf", "text|damaged")
def truncated_file() -> bytes:
    return SAMPLE_FILES["pdf"][: len(SAMPLE_FILES["pdf"]) // 2]


@hostile_file(PDFS, "pdf", "damaged")
def first_line_only() -> bytes:
    return b"%PDF-1.7\n"


@hostile_file(PDFS, "pdf", "damaged")
def document_without_pages() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count 0/Kids[]>>"])


def encrypted_pdf(user_password: str, owner_password: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=BytesIO(SAMPLE_FILES["pdf"]))
    writer.encrypt(user_password, owner_password, algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


add_file(PDFS, "pdf", "a password", partial(encrypted_pdf, "secret", "secret"), "encrypted")
add_file(PDFS, "pdf", "a password for changing it", partial(encrypted_pdf, "", "secret"), "text")


@hostile_file(PDFS, "pdf", "encrypted|damaged")
def unknown_encryption() -> bytes:
    return pdf_file(["kept"], trailer={b"Encrypt": b"<</Filter/Strange/V 99/R 99/O(x)/U(x)/P 0>>", b"ID": b"[(a)(a)]"})


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=400 * MB)
def object_stream_bomb() -> bytes:
    bomb = pdf_stream(deflated_bomb(1000), b"/Filter/FlateDecode/Type/ObjStm/N 1/First 4")
    return one_page(bomb, content=b"6 0 R", resources=b"/XObject 6 0 R")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=300 * MB)
def content_bomb() -> bytes:
    return one_page(content=pdf_stream(deflated_bomb(1000), b"/Filter/FlateDecode"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=300 * MB)
def content_compressed_four_times() -> bytes:
    content = deflated_bomb(1000)
    for _ in range(3):
        content = zlib.compress(content, 9)
    return one_page(content=pdf_stream(content, b"/Filter[" + b"/FlateDecode" * 4 + b"]"))


@hostile_file(PDFS, "pdf", "text|damaged")
def thousand_filters() -> bytes:
    return one_page(content=pdf_stream(PAGE_CONTENT, b"/Filter[" + b"/ASCIIHexDecode/LZWDecode" * 2000 + b"]"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def huge_image() -> bytes:
    image = deflated_stream(b"\0" * 1000, b"/Type/XObject/Subtype/Image/Width 100000/Height 100000/BitsPerComponent 8"
                                   b"/ColorSpace/DeviceRGB")  # fmt: skip
    return one_page(
        image, content=pdf_stream(PAGE_CONTENT + b" q 9 0 0 9 0 0 cm /I Do Q"), resources=b"/XObject<</I 6 0 R>>"
    )


@hostile_file(PDFS, "pdf", "text|damaged")
def jbig2_image() -> bytes:
    image_entries = b"/Filter/JBIG2Decode/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 1"
    image = pdf_stream(b"\x97JB2\r\n\x1a\n" + b"\xff" * 500, image_entries + b"/ColorSpace/DeviceGray")
    return one_page(image, content=pdf_stream(PAGE_CONTENT + b" /I Do"), resources=b"/XObject<</I 6 0 R>>")


for media_box in (b"0 0 1e30 1e30", b"-1e9 -1e9 1e9 1e9", b"0 0 0 0", b"a b c d", b"1 0 0 1 0 0 0"):
    add_file(PDFS, "pdf", f"a page of {media_box.decode()}", partial(pdf_file, ["kept"], media_box=media_box), "text")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=250 * MB)
def self_drawing_form() -> bytes:
    form = pdf_stream(b"/X Do /X Do", b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 6 0 R>>>>")
    return one_page(form, content=pdf_stream(PAGE_CONTENT + b" /X Do"), resources=b"/XObject<</X 6 0 R>>")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", cpu_s=1)
def forms_that_draw_each_other_ten_times() -> bytes:
    forms = [
        pdf_stream(b"/X Do " * 10 + PAGE_CONTENT, b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources"
               b"<</Font<</F1 4 0 R>>/XObject<</X %d 0 R>>>>" % (number + 1))
        for number in range(6, 18)
    ]  # fmt: skip
    return one_page(*forms, pdf_stream(PAGE_CONTENT), content=pdf_stream(b"/X Do"), resources=b"/XObject<</X 6 0 R>>")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", cpu_s=2)
def half_a_million_letters_in_one_line() -> bytes:
    return one_page(content=deflated_stream(b"BT /F1 10 Tf (" + b"kept and more " * 35_000 + b") Tj ET"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def font_with_a_circular_cmap() -> bytes:
    cmap = b"1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ffffffff> <0041> endbfrange"
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding 4 0 R/DescendantFonts[4 0 R]/ToUnicode 6 0 R>>"
    return one_page(pdf_stream(cmap * 1000), font=font)


@hostile_file(PDFS, "pdf", "text|damaged")
def encoding_with_a_path() -> bytes:
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/..#2f..#2f..#2ftmp#2fevil/DescendantFonts[6 0 R]>>"
    return one_page(b"<</Type/Font/Subtype/CIDFontType2/CIDSystemInfo<</Registry(../../x)/Ordering(y)>>>>", font=font)


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def circular_xref() -> bytes:
    file = pdf_file(["kept"])
    return file.replace(b"trailer<<", b"trailer<</Prev %d" % file.rindex(b"xref\n0"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def size_of_two_billion() -> bytes:
    return pdf_file(["kept"]).replace(b"/Size ", b"/Size 200000000").replace(b"xref\n0 ", b"xref\n0 200000000")


@hostile_file(PDFS, "pdf", "text")
def scripts_and_launch_actions() -> bytes:
    catalogue_with_actions = (
        b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>/AA<</WC<</S/JavaScript/JS(app.alert(1))>>>>>>"
    )
    return pdf_file(["kept"]).replace(CATALOGUE, catalogue_with_actions)


@hostile_file(PDFS, "pdf", "text|damaged")
def stream_longer_than_the_file() -> bytes:
    return pdf_file(["kept"]).replace(b"<</Length ", b"<</Length 99999999")


@hostile_file(PDFS, "pdf", "limit_characters", max_characters=1000)
def more_text_than_allowed() -> bytes:
    return pdf_file(["many words " * 8] * 50)
