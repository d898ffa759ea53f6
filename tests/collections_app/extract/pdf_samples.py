"""PDF files with positioned text, outlines, page labels and scans."""

import zlib

import pypdfium2

from tests.collections_app.extract.samples import escaped_pdf_text, pdf_of, pdf_stream

FIRST_PAGE_OBJECT = 6
# Position from the left and from the bottom, type size, text.
PlacedText = tuple[float, float, float, str]


def placed_pdf(pages: list[list[PlacedText]], *, labels: bytes = b"", outline: list[tuple[str, int]] | None = None,
               to_unicode: bytes = b"") -> bytes:  # fmt: skip
    """A PDF with texts at positions. `labels` are the entries of its page labels; the outline has titles and pages."""
    entries = outline or []
    first_entry = FIRST_PAGE_OBJECT + 2 * len(pages)
    page_numbers = [FIRST_PAGE_OBJECT + 2 * number for number in range(len(pages))]
    catalogue = b"<</Type/Catalog/Pages 2 0 R%b%b>>" % (
        b"/PageLabels<</Nums[%b]>>" % labels if labels else b"",
        b"/Outlines 4 0 R" if entries else b"",
    )
    objects = [
        catalogue,
        b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(pages), b" ".join(b"%d 0 R" % number for number in page_numbers)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%b>>" % (b"/ToUnicode 5 0 R" if to_unicode else b""),
        b"<</First %d 0 R/Last %d 0 R>>" % (first_entry, first_entry + len(entries) - 1),
        pdf_stream(to_unicode),
    ]
    for number, texts in zip(page_numbers, pages, strict=True):
        content = b" ".join(
            b"BT /F1 %g Tf 1 0 0 1 %g %g Tm (%b) Tj ET" % (size, x, y, escaped_pdf_text(text))
            for x, y, size, text in texts
        )
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents %d 0 R>>"
            % (number + 1),
            pdf_stream(content),
        ]
    for index, (title, page) in enumerate(entries):
        following = b"/Next %d 0 R" % (first_entry + index + 1) if index + 1 < len(entries) else b""
        objects.append(
            b"<</Title(%b)/Parent 4 0 R/Dest[%d 0 R/Fit]%b>>"
            % (escaped_pdf_text(title), page_numbers[page - 1], following)
        )
    return pdf_of(objects)


def paragraph(*lines: str, top: float = 600, size: float = 10, left: float = 72) -> list[PlacedText]:
    return [(left, top - 1.2 * size * number, size, line) for number, line in enumerate(lines)]


def glyph_pdf(glyphs: list[str]) -> bytes:
    """A PDF whose glyphs, drawn from left to right, stand for these texts."""
    pairs = b" ".join(
        b"<%02x> <%b>" % (code, text.encode("utf-16-be").hex().encode()) for code, text in enumerate(glyphs, ord("A"))
    )
    to_unicode = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
        b"1 begincodespacerange <00> <ff> endcodespacerange %d beginbfchar %b endbfchar endcmap end end"
    ) % (len(glyphs), pairs)
    codes = "".join(chr(code) for code in range(ord("A"), ord("A") + len(glyphs)))
    return placed_pdf([[(72, 700, 10, codes)]], to_unicode=to_unicode)


def scanned_pdf(pages: list[list[PlacedText] | None], resolution: int = 200) -> bytes:
    """A PDF with an image of each text, as a scanner makes it; None for a page with text instead of an image."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for texts in pages:
        number = len(objects) + 1
        kids.append(b"%d 0 R" % number)
        content = (
            b"BT /F1 12 Tf 72 700 Td (A page that was typed) Tj ET" if texts is None else b"612 0 0 792 0 0 cm /I Do"
        )
        objects += [
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>"
            b"/XObject<</I %d 0 R>>>>>>" % (number + 1, number + 2),
            pdf_stream(content),
            page_image(texts or [], resolution),
        ]
    objects[1] = b"<</Type/Pages/Count %d/Kids[%b]>>" % (len(kids), b" ".join(kids))
    return pdf_of(objects)


def page_image(texts: list[PlacedText], resolution: int) -> bytes:
    bitmap = pypdfium2.PdfDocument(placed_pdf([texts]))[0].render(scale=resolution / 72, grayscale=True)
    pixels = bytes(bitmap.buffer)
    rows = b"".join(
        pixels[start : start + bitmap.width] for start in range(0, bitmap.stride * bitmap.height, bitmap.stride)
    )
    entries = b"/Type/XObject/Subtype/Image/Width %d/Height %d/BitsPerComponent 8/ColorSpace/DeviceGray" % (
        bitmap.width,
        bitmap.height,
    )
    return pdf_stream(zlib.compress(rows), b"/Filter/FlateDecode" + entries)
