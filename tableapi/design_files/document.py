"""Turns the text of a design file into items, and items into text. Pure.

format: 1            complete: true            roles: […]            rules: […] for any table
tables: [{name, …, columns: [{…, choices: […]}], views: [{…, columns: […]}], rules: […], set_on_change: […]}]
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from system.errors import BadRequest, combine_errors
from tableapi.catalogue.definitions import NUMBER_COLUMN

from .kinds import COLUMN, RULE, TABLE, Attribute, Item, Key, Kind, sections_of
from .yaml_text import Mapping, Node, Scalar, Sequence, parse_yaml, write_yaml, yaml_error

FORMAT = 1
MAX_NUMBER_DIGITS = 9
ANY_TABLE: Key = ("",)


@dataclass
class Design:
    """Items by key, in the order of the file. `sections` are those that the file has, with the key of their parent."""

    items: dict[Kind, dict[Key, Item]] = field(default_factory=dict)
    sections: set[tuple[Kind, Key]] = field(default_factory=set)
    is_complete: bool = False

    def of(self, kind: Kind) -> dict[Key, Item]:
        return self.items.setdefault(kind, {})

    def add(self, item: Item) -> None:
        self.of(item.kind)[item.key] = item


class _Reader:
    """Reads the nodes of one file. Collects the errors, so that all are reported at once."""

    def __init__(self) -> None:
        self.design = Design()
        self.errors: list[BadRequest] = []

    def refuse(self, line: int, message: str) -> None:
        self.errors.append(yaml_error(line, message))

    def read_root(self, root: Node) -> None:
        if not isinstance(root, Mapping):
            self.refuse(root.line, "The file must start with names such as “format:” and “tables:”.")
            return
        options = (Attribute("format", int, is_required=True), Attribute("complete", bool, False))
        values = self.read_values(root, options, sections_of(None))
        if values.get("format", FORMAT) != FORMAT:
            self.refuse(root.line, f"The format must be {FORMAT}.")
        self.design.is_complete = values.get("complete", False)
        self.read_sections(root, None, ())

    def read_sections(self, node: Mapping, parent: Kind | None, parent_key: Key) -> None:
        for section, kind in sections_of(parent).items():
            if section in node.entries:
                self.read_section(kind, node.entries[section], ANY_TABLE if kind is RULE and not parent else parent_key)

    def read_section(self, kind: Kind, node: Node, parent_key: Key) -> None:
        self.design.sections.add((kind, parent_key))
        if isinstance(node, Scalar) and node.is_null:
            return
        if not isinstance(node, Sequence):
            self.refuse(node.line, f"“{kind.section}” must be a list.")
            return
        for number, entry in enumerate(node.items):
            if not isinstance(entry, Mapping):
                self.refuse(entry.line, f"An entry of “{kind.section}” must have names and values.")
                continue
            # All attributes of a table may be missing: a product table has none, and those of others then stay.
            values = self.read_values(entry, kind.attributes, sections_of(kind), fill=kind is not TABLE)
            identity = [values.get(name) for name in kind.identity] if kind.identity else [str(number)]
            if not all(isinstance(name, str) for name in identity):
                continue  # reported
            item = Item(kind, (*parent_key, *map(str, identity)), values, entry.line)
            if item.key in self.design.of(kind):
                self.refuse(entry.line, f"{item} occurs more than once.")
            self.design.add(item)
            self.read_sections(entry, kind, item.key)

    def read_values(
        self, node: Mapping, attributes: Iterable[Attribute], sections: dict[str, Kind], *, fill: bool = True
    ) -> dict[str, Any]:
        by_name = {attribute.name: attribute for attribute in attributes}
        values = {}
        for name, value_node in node.entries.items():
            if name in by_name:
                try:
                    values[name] = _read_value(by_name[name], value_node)
                except BadRequest as error:
                    self.errors.append(error)
                    values[name] = None
            elif name not in sections:
                self.refuse(value_node.line, f"“{name[:100]}” is not known here.")
        fill = fill or len(values) > 1
        for attribute in by_name.values():
            if attribute.name not in values and (fill or attribute.name == "name"):
                if attribute.is_required:
                    self.refuse(node.line, f"“{attribute.name}” is missing.")
                elif not attribute.is_derived:
                    values[attribute.name] = _default(attribute)
        return values


def _default(attribute: Attribute) -> Any:
    return list(attribute.default) if attribute.type is list else attribute.default


def _read_value(attribute: Attribute, node: Node) -> Any:
    if attribute.type is list:
        if isinstance(node, Scalar) and node.is_null and not attribute.is_required:
            return []
        if not isinstance(node, Sequence):
            raise yaml_error(node.line, f"“{attribute.name}” must be a list of names.")
        names = [_read_text(attribute, item) for item in node.items]
        return sorted(set(names)) if attribute.target else list(dict.fromkeys(names))
    if isinstance(node, Scalar) and node.is_null and not attribute.is_required:
        return attribute.default
    text = _read_text(attribute, node)
    is_plain = isinstance(node, Scalar) and node.is_plain
    if attribute.type is bool:
        if not is_plain or text not in ("true", "false"):
            raise yaml_error(node.line, f"“{attribute.name}” must be true or false.")
        return text == "true"
    if attribute.type is int:
        if not is_plain or not re.fullmatch(rf"[0-9]{{1,{MAX_NUMBER_DIGITS}}}", text):
            raise yaml_error(node.line, f"“{attribute.name}” must be a whole number.")
        return int(text)
    return text


def _read_text(attribute: Attribute, node: Node) -> str:
    if not isinstance(node, Scalar) or (node.is_null and attribute.is_required):
        raise yaml_error(node.line, f"“{attribute.name}” must be a text.")
    return node.text


def parse_design(data: bytes) -> Design:
    reader = _Reader()
    reader.read_root(parse_yaml(data))
    if reader.errors:
        raise combine_errors(reader.errors)
    return reader.design


def design_text(design: Design, comments: Iterable[str] = ()) -> str:
    """The text of a whole design: sorted by name, and without the attributes that have their default."""
    document = {"format": FORMAT, "complete": True, **_sections(design, None, ())}
    if any_table := _entries(design, RULE, ANY_TABLE):
        document[RULE.section] = any_table
    return "".join(f"# {line}\n" for line in comments) + write_yaml(document)


def _sections(design: Design, parent: Kind | None, parent_key: Key) -> dict[str, Any]:
    sections = {name: kind for name, kind in sections_of(parent).items() if parent or kind is not RULE}
    entries = {name: _entries(design, kind, parent_key) for name, kind in sections.items()}
    return {name: list_ for name, list_ in entries.items() if list_}


def _entries(design: Design, kind: Kind, parent_key: Key) -> list[dict[str, Any]]:
    items = [item for item in design.of(kind).values() if item.parent_key == parent_key]
    if kind is COLUMN:  # in order of creation; the number is created with its table
        items.sort(key=lambda item: item.key[-1] != NUMBER_COLUMN)
    elif kind is RULE:
        items.sort(
            key=lambda item: (
                [str(item.values[name]) for name in ("column", "operation", "description")] + [str(item.values)]
            )
        )
    elif not kind.is_ordered:
        items.sort(key=lambda item: item.key)
    return [dict(given_values(item)) | _sections(design, kind, item.key) for item in items]


def given_values(item: Item) -> Iterator[tuple[str, Any]]:
    """The values that a file needs: those that differ from their default, or have none."""
    for attribute in item.kind.attributes:
        if attribute.name in item.values:
            value = item.values[attribute.name]
            if attribute.is_required or value != _default(attribute):
                yield attribute.name, list(value) if attribute.type is list else value
