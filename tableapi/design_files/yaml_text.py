"""Reads the part of YAML that design files need: mappings, lists and scalars with their lines. Pure.

The parser of PyYAML delivers events; tags, anchors and aliases are refused, and every text is read by the type that
its attribute has. So `no` is a text or an error, but never a boolean by accident.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import yaml

from system.errors import BadRequest, TooLarge
from tableapi.catalogue.value_readers import UNSTORABLE_CHARACTER

MAX_FILE_BYTES = 2 * 1024 * 1024
MAX_DEPTH = 12
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Scalar:
    line: int
    text: str
    is_plain: bool  # not in quotes

    @property
    def is_null(self) -> bool:
        return self.is_plain and self.text in ("", "~", "null")


@dataclass(frozen=True)
class Sequence:
    line: int
    items: "list[Node]" = field(default_factory=list)


@dataclass
class Mapping:
    line: int
    entries: "dict[str, Node]" = field(default_factory=dict)
    key: str | None = None  # whose value is read next


Node = Scalar | Sequence | Mapping


def yaml_error(line: int, message: str) -> BadRequest:
    return BadRequest(f"Line {line}: {message}", code="invalid_design", position=line)


def parse_yaml(data: bytes) -> Node:
    """Return the root of the only document.

    >>> parse_yaml(b"label: no").entries["label"].text
    'no'
    """
    if len(data) > MAX_FILE_BYTES:
        raise TooLarge(f"A design file can have at most {MAX_FILE_BYTES // 1024 // 1024} MB.")
    try:
        return _build(yaml.parse(data.decode("utf-8-sig"), Loader=LOADER))
    except UnicodeDecodeError:
        raise BadRequest("The file must be encoded in UTF-8.", code="invalid_design") from None
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character or escape is invalid"
        raise yaml_error(mark.line + 1 if mark else 1, f"This is not valid YAML: {problem}.") from None


def _build(events: Iterable[Any]) -> Node:
    root: Node | None = None
    stack: list[Sequence | Mapping] = []
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
            continue
        if isinstance(event, yaml.DocumentStartEvent) and root is not None:
            raise yaml_error(line, "A file can have only one document.")
        if not isinstance(event, yaml.NodeEvent):
            continue
        node = _node(event, line)
        if stack:
            _add(stack[-1], node)
        else:
            root = node
        if not isinstance(node, Scalar):
            stack.append(node)
            if len(stack) > MAX_DEPTH:
                raise yaml_error(line, "The file is nested too deeply.")
    if root is None:
        raise BadRequest("The file is empty.", code="invalid_design")
    return root


def _node(event: Any, line: int) -> Node:
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
        raise yaml_error(line, "Anchors and aliases are not supported.")
    if event.tag is not None:
        raise yaml_error(line, "Tags are not supported.")
    if isinstance(event, yaml.MappingStartEvent):
        return Mapping(line)
    if isinstance(event, yaml.SequenceStartEvent):
        return Sequence(line)
    if UNSTORABLE_CHARACTER.search(event.value):
        raise yaml_error(line, "Remove the characters that cannot be stored, such as NUL.")
    return Scalar(line, event.value, not event.style)


def _add(container: Sequence | Mapping, node: Node) -> None:
    if isinstance(container, Sequence):
        container.items.append(node)
    elif container.key is not None:
        container.entries[container.key], container.key = node, None
    elif not isinstance(node, Scalar):
        raise yaml_error(node.line, "A name is expected.")
    elif node.text in container.entries:
        raise yaml_error(node.line, f"“{node.text[:100]}” was given more than once.")
    else:
        container.key = node.text


def write_yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120))
