"""PDF files: endless trees, bombs, wrong sizes, scripts. Adds them to `hostile.PDFS`."""

import zlib
from functools import partial
from io import BytesIO

import pypdf

from tests.collections_app.extract.hostile import PDFS, add_file, hostile_file
from tests.collections_app.extract.samples import SAMPLE_FILES, pdf, pdf_of, pdf_stream

MB = 1024 * 1024
CATALOGUE = b"<</Type/Catalog/Pages 2 0 R>>"
FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
PAGE_CONTENT = b"BT /F1 10 Tf 40 700 Td (kept) Tj ET"
PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 4 0 R>>%b>>/Contents 5 0 R>>"


def one_page(
    *further_objects: bytes, content: bytes = pdf_stream(PAGE_CONTENT), resources: bytes = b"", font: bytes = FONT
) -> bytes:
    """A page (object 3) with a font (4) and a content (5); further objects from 6 on."""
    pages = b"<</Type/Pages/Count 1/Kids[3 0 R]>>"
    return pdf_of([CATALOGUE, pages, PAGE % resources, font, content, *further_objects])


def deflated_bomb(megabytes: int) -> bytes:
    """What so many megabytes of spaces deflate to, without deflating them all."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(b" " * MB) + packer.flush(zlib.Z_FULL_FLUSH)
    return b"\x78\xda" + block * megabytes + b"\3\0" + b"\0" * 4


def deflated(content: bytes, entries: bytes = b"") -> bytes:
    return pdf_stream(zlib.compress(content, 9), b"/Filter/FlateDecode" + entries)


@hostile_file(PDFS, "pdf", "text|damaged")
def pages_that_hold_themselves() -> bytes:
    return pdf_of(
        [CATALOGUE, b"<</Type/Pages/Count 5/Kids[2 0 R 2 0 R 3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)]
    )


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def pages_in_a_circle() -> bytes:
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
def a_content_100000_deep() -> bytes:
    return one_page(content=pdf_stream(b"[" * 100_000 + b"q " * 100_000 + PAGE_CONTENT))


@hostile_file(PDFS, "pdf", "limit_pages")
def pages_by_the_hundred_thousand() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count 100000/Kids[%b]>>" % (b"3 0 R " * 100_000), PAGE % b"", FONT,
                   pdf_stream(PAGE_CONTENT)])  # fmt: skip


@hostile_file(PDFS, "pdf", "limit_pages|text|damaged")
def a_count_of_two_billion() -> bytes:
    return pdf_of(
        [CATALOGUE, b"<</Type/Pages/Count 2000000000/Kids[3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)]
    )


@hostile_file(PDFS, "pdf", "text|damaged")
def a_count_below_zero() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count -5/Kids[3 0 R]>>", PAGE % b"", FONT, pdf_stream(PAGE_CONTENT)])


@hostile_file(PDFS, "pdf", "text")
def an_xref_that_lies() -> bytes:
    return SAMPLE_FILES["pdf"].replace(b" 00000 n", b" 00003 n").replace(b"startxref\n", b"startxref\n9")


@hostile_file(PDFS, "pdf", "text|damaged")
def no_xref() -> bytes:
    return SAMPLE_FILES["pdf"][: SAMPLE_FILES["pdf"].index(b"xref\n0")]


@hostile_file(PDFS, "pdf", "text|damaged")
def cut_in_half() -> bytes:
    return SAMPLE_FILES["pdf"][: len(SAMPLE_FILES["pdf"]) // 2]


@hostile_file(PDFS, "pdf", "damaged")
def its_first_line_alone() -> bytes:
    return b"%PDF-1.7\n"


@hostile_file(PDFS, "pdf", "damaged")
def without_pages() -> bytes:
    return pdf_of([CATALOGUE, b"<</Type/Pages/Count 0/Kids[]>>"])


def encrypted(user: str, owner: str) -> bytes:
    writer = pypdf.PdfWriter(clone_from=BytesIO(SAMPLE_FILES["pdf"]))
    writer.encrypt(user, owner, algorithm="RC4-128")
    file = BytesIO()
    writer.write(file)
    return file.getvalue()


add_file(PDFS, "pdf", "a password", partial(encrypted, "secret", "secret"), "encrypted")
add_file(PDFS, "pdf", "a password for changing it", partial(encrypted, "", "secret"), "text")


@hostile_file(PDFS, "pdf", "encrypted|damaged")
def a_lock_that_nobody_knows() -> bytes:
    return pdf(["kept"], trailer={b"Encrypt": b"<</Filter/Strange/V 99/R 99/O(x)/U(x)/P 0>>", b"ID": b"[(a)(a)]"})


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=400 * MB)
def a_stream_of_objects_that_is_a_bomb() -> bytes:
    bomb = pdf_stream(deflated_bomb(1000), b"/Filter/FlateDecode/Type/ObjStm/N 1/First 4")
    return one_page(bomb, content=b"6 0 R", resources=b"/XObject 6 0 R")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=300 * MB)
def a_content_that_is_a_bomb() -> bytes:
    return one_page(content=pdf_stream(deflated_bomb(1000), b"/Filter/FlateDecode"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=300 * MB)
def a_content_packed_four_times() -> bytes:
    content = deflated_bomb(1000)
    for _ in range(3):
        content = zlib.compress(content, 9)
    return one_page(content=pdf_stream(content, b"/Filter[" + b"/FlateDecode" * 4 + b"]"))


@hostile_file(PDFS, "pdf", "text|damaged")
def filters_by_the_thousand() -> bytes:
    return one_page(content=pdf_stream(PAGE_CONTENT, b"/Filter[" + b"/ASCIIHexDecode/LZWDecode" * 2000 + b"]"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def a_huge_image() -> bytes:
    image = deflated(b"\0" * 1000, b"/Type/XObject/Subtype/Image/Width 100000/Height 100000/BitsPerComponent 8"
                                   b"/ColorSpace/DeviceRGB")  # fmt: skip
    return one_page(
        image, content=pdf_stream(PAGE_CONTENT + b" q 9 0 0 9 0 0 cm /I Do Q"), resources=b"/XObject<</I 6 0 R>>"
    )


@hostile_file(PDFS, "pdf", "text|damaged")
def an_image_in_jbig2() -> bytes:
    kind = b"/Filter/JBIG2Decode/Type/XObject/Subtype/Image/Width 60000/Height 60000/BitsPerComponent 1"
    image = pdf_stream(b"\x97JB2\r\n\x1a\n" + b"\xff" * 500, kind + b"/ColorSpace/DeviceGray")
    return one_page(image, content=pdf_stream(PAGE_CONTENT + b" /I Do"), resources=b"/XObject<</I 6 0 R>>")


for media_box in (b"0 0 1e30 1e30", b"-1e9 -1e9 1e9 1e9", b"0 0 0 0", b"a b c d", b"1 0 0 1 0 0 0"):
    add_file(PDFS, "pdf", f"a page of {media_box.decode()}", partial(pdf, ["kept"], media_box=media_box), "text")


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*", memory_bytes=250 * MB)
def a_form_that_draws_itself() -> bytes:
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
    return one_page(content=deflated(b"BT /F1 10 Tf (" + b"kept and more " * 35_000 + b") Tj ET"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def a_font_that_translates_to_itself() -> bytes:
    cmap = b"1 begincodespacerange <00> <ff> endcodespacerange 1 beginbfrange <00> <ffffffff> <0041> endbfrange"
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding 4 0 R/DescendantFonts[4 0 R]/ToUnicode 6 0 R>>"
    return one_page(pdf_stream(cmap * 1000), font=font)


@hostile_file(PDFS, "pdf", "text|damaged")
def an_encoding_that_is_a_path() -> bytes:
    font = b"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/..#2f..#2f..#2ftmp#2fevil/DescendantFonts[6 0 R]>>"
    return one_page(b"<</Type/Font/Subtype/CIDFontType2/CIDSystemInfo<</Registry(../../x)/Ordering(y)>>>>", font=font)


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def an_xref_that_comes_before_itself() -> bytes:
    file = pdf(["kept"])
    return file.replace(b"trailer<<", b"trailer<</Prev %d" % file.rindex(b"xref\n0"))


@hostile_file(PDFS, "pdf", "text|damaged|limit_.*")
def a_size_of_two_billion() -> bytes:
    return pdf(["kept"]).replace(b"/Size ", b"/Size 200000000").replace(b"xref\n0 ", b"xref\n0 200000000")


@hostile_file(PDFS, "pdf", "text")
def scripts_and_programs_to_start() -> bytes:
    action = (
        b"<</Type/Catalog/Pages 2 0 R/OpenAction<</S/Launch/F(/bin/sh)>>/AA<</WC<</S/JavaScript/JS(app.alert(1))>>>>>>"
    )
    return pdf(["kept"]).replace(CATALOGUE, action)


@hostile_file(PDFS, "pdf", "text|damaged")
def a_stream_longer_than_the_file() -> bytes:
    return pdf(["kept"]).replace(b"<</Length ", b"<</Length 99999999")


@hostile_file(PDFS, "pdf", "limit_characters", max_characters=1000)
def more_text_than_allowed() -> bytes:
    return pdf(["many words " * 8] * 50)
