"""Detects the encoding of a text and decodes it."""

import codecs
import re
import unicodedata
from collections import Counter
from encodings.aliases import aliases

from charset_normalizer import from_bytes

# UTF-32 first: its byte order mark begins with that of UTF-16.
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Common encodings; if several match equally well, the first is used. When all encodings of the library were candidates,
# short texts were detected as rare ones, for example French as Baltic (cp1257). cp1252 includes latin-1's characters.
COMMON_ENCODINGS = (
    "cp1252", "cp1251", "koi8_r", "cp866", "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp1250", "cp1253", "cp1254",
    "cp1255", "cp1256", "iso8859_2", "iso8859_5",
)  # fmt: skip
# As in browsers: texts that declare the first contain quotation marks and dashes of the second.
WINDOWS_ENCODINGS = {"iso-8859-1": "cp1252", "latin1": "cp1252", "iso-8859-9": "cp1254"}
# Data that is valid UTF-8 is almost never anything else, even with unassigned or private-use characters.
UTF_8 = ("utf-8", "utf-8-sig")
UNICODE_ENCODINGS = ("utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")
# The sample from which the encoding is detected. Data after it only has to decode without errors.
SAMPLE_LENGTH = 256 * 1024
CONTROL_CHARACTERS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffe\uffff]")
MAX_CONTROL_SHARE = 0.02
MAX_CHARACTER_BYTES = 4
# Share of unassigned code points: binary data read as UTF-16 has many of them.
MAX_UNASSIGNED_SHARE = 0.02
# Share of zeros in the third bytes of UTF-32: characters beyond the first plane are rare.
MIN_ZERO_SHARE = 0.9


class NotText(Exception):
    """The data is not text in any common encoding."""


def decode(data: bytes, *, declared_encoding: str = "", is_truncated: bool = False) -> str:
    """Decodes a text; with `is_truncated` it may end within a character.

    `declared_encoding` is tried after byte order marks and Unicode.

    >>> decode("Привет, как дела?".encode("cp1251"))
    'Привет, как дела?'
    """
    for encoding in (encoding_by_byte_order_mark(data), "utf-8", *encodings_by_zero_bytes(data), declared_encoding):
        text = try_decode(data, encoding, is_truncated) if encoding else None
        if text is not None and is_text(text, allows_unassigned=encoding in UTF_8):
            return text
        if encoding and encoding == encoding_by_byte_order_mark(data):
            raise NotText
    if b"\0" in data:
        raise NotText
    return guess_and_decode(data, is_truncated)


def encoding_by_byte_order_mark(data: bytes) -> str:
    return next((encoding for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)), "")


def encodings_by_zero_bytes(data: bytes) -> list[str]:
    """Returns the candidates for data without a byte order mark: UTF-32 if its zero bytes fit, otherwise UTF-16.

    The byte order with more ASCII characters comes first: texts in any script have spaces, line ends or digits.

    >>> encodings_by_zero_bytes("日本語 1".encode("utf-16-be"))[0], encodings_by_zero_bytes("a".encode("utf-32-le"))
    ('utf-16-be', ['utf-32-le'])
    """
    sample = data[: SAMPLE_LENGTH // 4 * 4]
    if b"\0" not in sample:
        return []
    zero_counts = [sample[offset::4].count(0) for offset in range(4)]
    quarter = len(sample) // 4
    if quarter and len(data) % 4 == 0:
        if zero_counts[3] == quarter and zero_counts[2] >= MIN_ZERO_SHARE * quarter:
            return ["utf-32-le"]
        if zero_counts[0] == quarter and zero_counts[1] >= MIN_ZERO_SHARE * quarter:
            return ["utf-32-be"]
    return sorted(("utf-16-le", "utf-16-be"), key=lambda encoding: -count_ascii(sample, encoding))


def count_ascii(sample: bytes, encoding: str) -> int:
    return sum(character < "\x7f" for character in sample.decode(encoding, "ignore"))


def try_decode(data: bytes, encoding: str, is_truncated: bool) -> str | None:
    encoding = WINDOWS_ENCODINGS.get(encoding.lower(), encoding)
    try:
        # Unpaired surrogates are removed later, with a warning.
        decoder = codecs.getincrementaldecoder(encoding)("surrogatepass" if "16" in encoding else "strict")
        return decoder.decode(data, final=not is_truncated)
    except (UnicodeError, LookupError, ValueError, OSError):  # OSError: a codec that was not loaded before
        return None


def is_text(text: str, *, allows_unassigned: bool = False) -> bool:
    """Whether this looks like text. With `allows_unassigned`, unassigned characters are valid.

    >>> is_text("\ue000"), is_text("\ue000", allows_unassigned=True), is_text("\1\2", allows_unassigned=True)
    (False, True, False)
    """
    sample = text[:SAMPLE_LENGTH]
    counts = Counter(sample).items()
    control_count = sum(count for character, count in counts if CONTROL_CHARACTERS.match(character))
    if control_count > max(1, MAX_CONTROL_SHARE * len(sample)):
        return False
    if allows_unassigned:
        return True
    unassigned = sum(count for character, count in counts if unicodedata.category(character) in ("Cn", "Co", "Cs"))
    return unassigned <= MAX_UNASSIGNED_SHARE * len(sample)


def guess_and_decode(data: bytes, is_truncated: bool) -> str:
    """Decodes with the best match of the library. Among equal matches, the first of COMMON_ENCODINGS is used."""
    sample = cut_sample(data)
    for end in range(len(sample), max(0, len(sample) - MAX_CHARACTER_BYTES), -1):
        if matches := list(from_bytes(sample[:end], cp_isolation=list(COMMON_ENCODINGS))):
            break
        if len(sample) == len(data) and not is_truncated:  # the sample does not end within a character
            raise NotText
    else:
        raise NotText
    best = matches[0]
    equal_matches = [match for match in matches if (match.chaos, match.coherence) == (best.chaos, best.coherence)]
    names = {name for match in equal_matches for name in (match.encoding, *match.could_be_from_charset)}
    for encoding in sorted(names.intersection(COMMON_ENCODINGS), key=COMMON_ENCODINGS.index):
        text = try_decode(data, encoding, is_truncated)
        if text is not None and is_text(text):
            return text
    raise NotText


def cut_sample(data: bytes) -> bytes:
    if len(data) <= SAMPLE_LENGTH:
        return data
    end = data.rfind(b"\n", 0, SAMPLE_LENGTH)
    return data[: end + 1] if end > SAMPLE_LENGTH // 2 else data[:SAMPLE_LENGTH]


def preload(*, loads_all: bool = False) -> None:
    """Loads the codecs, whose files Python opens at first use. `loads_all` is for files that may name any encoding."""
    encodings = {*COMMON_ENCODINGS, *UNICODE_ENCODINGS, *(aliases.values() if loads_all else ())}
    for encoding in sorted(encodings):
        try:
            codecs.lookup(encoding)
        except LookupError:
            pass  # a codec of another platform
    from_bytes("Как дела? Größe, déjà.".encode("cp1251", "replace"), cp_isolation=list(COMMON_ENCODINGS))
