"""The format of an exported folder: files, their metadata, and a list of documents.

    handbook.pdf
    handbook.pdf.metadata.json     {"type": "manual"}
    documents.jsonl                of exports only: ids and names as they were, one document a line

Names of files come from outside in both directions, so no path is ever made of one that was not taken apart here.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SIDECAR = ".metadata.json"
LIST = "documents.jsonl"
LONGEST_BYTES = 180
# Windows opens a device under these names, whatever follows the dot.
DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)
ENDINGS = {"markdown": ".md", "text": ".txt"}


class UnfitFolder(ValueError):
    """A folder that cannot be read as one of documents, or written as one; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A document of a folder. An export says what it was called; of other files only the path is known."""

    path: Path
    name: str
    doc_id: str
    format: str
    metadata: dict[str, Any]
    is_exported: bool
    # Why its metadata cannot be read; empty when they can.
    problem: str = ""

    def sha256(self) -> str:
        with self.path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()


def files(folder: Path, metadata: dict[str, Any]) -> Iterator[File]:
    """The documents of a folder and of those in it, in the order of their paths; `metadata` is for those without."""
    if not folder.is_dir():
        raise UnfitFolder(f"{folder} is no folder.")
    listed = _listed(folder)
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        is_hidden = any(part.startswith(".") for part in place.parts)
        is_ours = path.name.endswith(SIDECAR) or (bool(listed) and place == Path(LIST))
        # A link may lead anywhere.
        if is_hidden or is_ours or path.is_symlink() or not path.is_file() or _is_linked(folder, place):
            continue
        told = listed.get(place.as_posix(), {})
        beside, problem = _sidecar(path)
        yield File(
            path=path,
            name=told.get("filename", path.name),
            doc_id=told.get("doc_id", place.as_posix()),
            format=told.get("format", ""),
            metadata={**({} if told else metadata), **beside},
            is_exported=bool(told),
            problem=problem,
        )


def _is_linked(folder: Path, place: Path) -> bool:
    return any((folder / parent).is_symlink() for parent in place.parents)


def _sidecar(path: Path) -> tuple[dict[str, Any], str]:
    """The metadata beside a file, or what is wrong with them, which is no reason to leave out the others."""
    beside = path.with_name(path.name + SIDECAR)
    if beside.is_symlink() or not beside.is_file():
        return {}, ""
    try:
        return metadata_object(beside.read_bytes(), beside.name), ""
    except UnfitFolder as error:
        return {}, str(error)
    except OSError as error:
        return {}, f"{beside.name}: {error.strerror}"


def metadata_object(written: str | bytes, where: str) -> dict[str, Any]:
    """
    >>> metadata_object('{"type": "manual"}', "--metadata")
    {'type': 'manual'}
    >>> metadata_object(b'{"type": "Ger\\xe4t"}', "a.txt.metadata.json")
    Traceback (most recent call last):
    collections_app.transfer.folder_format.UnfitFolder: a.txt.metadata.json holds no JSON object in UTF-8.
    """
    try:
        found = json.loads(written.decode("utf-8-sig") if isinstance(written, bytes) else written)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UnfitFolder(f"{where} holds no JSON object in UTF-8.")
    return found


def _listed(folder: Path) -> dict[str, dict[str, str]]:
    """What an export noted of its files, by file; nothing for other folders."""
    path = folder / LIST
    if path.is_symlink() or not path.is_file():
        return {}
    found: dict[str, dict[str, str]] = {}
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            told = metadata_object(line, f"{path}, line {number},")
            noted = {key: told.get(key) for key in ("file", "doc_id", "filename", "format")}
            if not all(isinstance(value, str) for value in noted.values()):
                raise UnfitFolder(f"{path}, line {number}, does not say which document it is about.")
            found[str(noted.pop("file"))] = {key: str(value) for key, value in noted.items()}
    return found


class Target:
    """The folder of an export: empty before, and nothing is ever written outside of it or over anything."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise UnfitFolder(f"{folder} is not empty.")
        self.folder = folder.resolve(strict=True)
        self.taken = {LIST}

    def add(self, data: bytes, noted: dict[str, str], metadata: dict[str, Any]) -> str:
        """Write a document; the list last, so that it names only what is there."""
        name = self._free(safe_name(noted["filename"] or noted["doc_id"], noted["format"]))
        self._write(name, data)
        if metadata:
            self._write(name + SIDECAR, json.dumps(metadata, ensure_ascii=False, indent=2).encode())
        line = json.dumps({"file": name, **noted}, ensure_ascii=False) + "\n"
        with self._inside(LIST).open("a", encoding="utf-8") as opened:
            opened.write(line)
        return name

    def _free(self, name: str) -> str:
        """Upper and lower case are one name on many disks."""
        stem, dot, ending = name.rpartition(".")
        number, found = 1, name
        while found.casefold() in self.taken:
            number += 1
            found = f"{stem} ({number}).{ending}" if dot else f"{name} ({number})"
        self.taken |= {found.casefold(), (found + SIDECAR).casefold()}
        return found

    def _write(self, name: str, data: bytes) -> None:
        with self._inside(name).open("xb") as opened:
            opened.write(data)

    def _inside(self, name: str) -> Path:
        path = self.folder / name
        assert path.parent == self.folder and path.name == name
        return path


def safe_name(name: str, format: str) -> str:
    r"""A name that is a file in its folder on any system, and nothing else.

    >>> safe_name("../../etc/passwd", "text"), safe_name("C:\\a\r\n.pdf", "pdf"), safe_name("con.txt", "text")
    ('etc_passwd.txt', 'C__a__.pdf', '_con.txt')
    >>> safe_name("", "text"), safe_name("a.metadata.json", "text"), safe_name("x" * 300 + ".pdf", "pdf")[-8:]
    ('document.txt', 'a.metadata.json.txt', 'xxxx.pdf')
    """
    found = "".join(
        "_" if each in '/\\:*?"<>|' or unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp") else each
        for each in unicodedata.normalize("NFC", name)
    ).strip(" ._")
    found = found or "document"
    stem, dot, ending = found.rpartition(".")
    if not dot or len(ending) > 10 or found.endswith(SIDECAR):
        stem, ending = found, ENDINGS.get(format, f".{format}").removeprefix(".")
    if DEVICES.match(stem + "."):
        stem = f"_{stem}"
    room = LONGEST_BYTES - len(ending.encode()) - 1
    return stem.encode()[:room].decode(errors="ignore") + f".{ending}"
