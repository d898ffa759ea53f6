"""The dialects of the query language: how fields are named, and the limits of a query."""

import re
from dataclasses import dataclass

from .errors import QueryError

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """The syntax of names, and the limits of one query.

    `name_pattern` matches one name of a path, in linear time: one repeated class, no nesting. It must never match
    where an operator begins, since a path ends there. `allows_quoted_names` allows any other name in {…}.
    """

    name_pattern: re.Pattern[str]
    max_name_length: int
    allows_quoted_names: bool = False
    max_bytes: int = 16 * 1024
    max_conditions: int = 200
    max_list_values: int = 1_000
    max_hops: int = 5
    # Chosen: no list that a person reads is sorted by more, and each key costs time on every page.
    max_sort_keys: int = 20
    # Chosen: deeper than any user interface builds, shallow enough for recursion.
    max_depth: int = 20


# "Table and column names match [a-z][a-z0-9_]{0,62}"; the length is checked separately, for a better message.
RECORDS = Dialect(name_pattern=re.compile(r"[a-z][a-z0-9_]*+"), max_name_length=63)

# Clients choose the names of metadata fields. Every operator is a symbol or begins with two upper-case
# letters, so a name may be anything else: docType and Department are bare names, {docID} and {file name} need braces.
METADATA = Dialect(
    name_pattern=re.compile(r"""(?:[^\x00-\x20\x7fA-Z.,;^(){}=!<>@"'\\]|[A-Z](?![A-Z]))++"""),
    max_name_length=200,
    allows_quoted_names=True,
)


# Possessive, so that no text makes it backtrack.
_QUOTED = re.compile(r"\{((?:[^}]++|\}\})*+)\}")


def read_quoted(text: str, start: int) -> tuple[str, int]:
    """The text in the {…} that begins at `start`, and the position after it; `}}` stands for one `}`.

    >>> read_quoted("{a^b}^c=1", 0)
    ('a^b', 5)
    >>> read_quoted("{{x}}}", 0)
    ('{x}', 6)
    """
    match = _QUOTED.match(text, start)
    if match is None:
        raise QueryError("unclosed { (write }} for a } inside the braces)", start, "{")
    return match[1].replace("}}", "}"), match.end()


def read_path(text: str, start: int, dialect: Dialect) -> tuple[Path, int]:
    """The longest path at `start` and the position after it.

    >>> read_path("caller.phoneLIKE7", 0, RECORDS)
    (('caller', 'phone'), 12)
    """
    names = []
    position = start
    while True:
        name, end = _read_name(text, position, dialect)
        names.append(name)
        if not text.startswith(".", end):
            return tuple(names), end
        if len(names) > dialect.max_hops:
            raise QueryError(f"a path has more than {dialect.max_hops} dots", start, text[start:end])
        position = end + 1


def _read_name(text: str, start: int, dialect: Dialect) -> tuple[str, int]:
    if dialect.allows_quoted_names and text.startswith("{", start):
        name, end = read_quoted(text, start)
    else:
        match = dialect.name_pattern.match(text, start)
        name, end = (match.group(), match.end()) if match else ("", start)
    if not name:
        raise QueryError("a field name is expected", start, text[start : start + 12])
    if len(name) > dialect.max_name_length:
        raise QueryError(f"a field name has more than {dialect.max_name_length} characters", start, name)
    return name, end


def read_whole_path(text: str, dialect: Dialect, position: int = 0) -> Path:
    """Reads a text that consists of one path; `position` is its position in the query.

    >>> read_whole_path("caller.phone", RECORDS)
    ('caller', 'phone')
    """
    try:
        path, end = read_path(text, 0, dialect)
    except QueryError as error:
        raise QueryError(error.message, position + error.position, error.token) from None
    if end != len(text):
        raise QueryError("a field name is expected", position + end, text[end:])
    return path
