"""EPUB books: the chapters in their reading order, without the table of contents."""

import posixpath
import zipfile
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from lxml import etree

from ..common import archive, visible_html
from ..common.failures import UnreadableFile, damaged_error, encrypted_error
from ..common.text_writer import TextWriter
from . import html

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
CHAPTER_TYPES = {"application/xhtml+xml", "text/html"}


def parse(data: bytes, writer: TextWriter, limits: dict[str, Any]) -> None:
    archive.check_archive(data, limits)
    with zipfile.ZipFile(BytesIO(data)) as file:
        chapters = chapter_names(file)
        if ENCRYPTION in file.namelist() and encrypted_names(file) & set(chapters):
            raise encrypted_error()
        for name in chapters:
            try:
                visible_html.write_visible_text(html.decode_page(file.read(name)), writer)
            except (KeyError, UnreadableFile) as error:
                if isinstance(error, UnreadableFile) and error.code != "damaged":
                    raise
                writer.warn(f"The chapter {name} could not be read.")
    if writer.warnings and not writer.length:
        raise damaged_error()


def chapter_names(file: zipfile.ZipFile) -> list[str]:
    package_name = next(iter(elements(file, CONTAINER, "rootfile"))).get("full-path", "")
    folder = posixpath.dirname(package_name)
    items = {item.get("id"): item for item in elements(file, package_name, "item")}
    spine = [items.get(reference.get("idref")) for reference in elements(file, package_name, "itemref")]
    return [
        posixpath.normpath(posixpath.join(folder, unquote(item.get("href", ""))))
        for item in spine
        if item is not None
        and item.get("media-type") in CHAPTER_TYPES
        and "nav" not in item.get("properties", "").split()
    ]


def encrypted_names(file: zipfile.ZipFile) -> set[str]:
    """Returns the encrypted entries. In many books without protection, these are fonts."""
    return {unquote(reference.get("URI", "")) for reference in elements(file, ENCRYPTION, "CipherReference")}


def elements(file: zipfile.ZipFile, entry: str, name: str) -> list[Any]:
    root = etree.fromstring(file.read(entry), etree.XMLParser(resolve_entities=False, no_network=True))
    return list(root.iter("{*}" + name))


preload = html.preload
