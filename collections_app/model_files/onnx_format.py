"""Writes ONNX files. Only conversion needs this; the package `onnx` and what it requires would take 40 MB.

An ONNX file is a protobuf message. The numbers are those of its fields in `onnx.proto`.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy

Field = tuple[int, int | float | str | bytes]

IR_VERSION, OPSET_VERSION = 8, 17
# Operators of onnxruntime that combine several of the standard.
EXTENSION_DOMAIN = "com.microsoft"
FLOAT_ATTRIBUTE, INTEGER_ATTRIBUTE = 1, 2
DATA_TYPES = {"float32": 1, "int8": 3}
IS_EXTERNAL = 1
# Small tensors are stored in the file itself. External ones begin at a page, so that they can be mapped.
MAX_INLINE_BYTES = 4_000
PAGE_BYTES = 4096


def message(*fields: Field) -> bytes:
    """Encodes fields, each with its number.

    >>> message((1, 300), (2, "ab")).hex()
    '08ac0212026162'
    """
    return b"".join(_encode_field(number, value) for number, value in fields)


def _encode_field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph in the making; `data` is the content of the file with the large tensors."""

    data_name: str
    data: bytearray = field(default_factory=bytearray)
    _nodes: list[Field] = field(default_factory=list)
    _tensors: list[Field] = field(default_factory=list)

    def add_tensor(self, name: str, array: Any) -> str:
        content = numpy.ascontiguousarray(array).tobytes()
        fields: list[Field] = [(1, size) for size in array.shape]
        fields += [(2, DATA_TYPES[array.dtype.name]), (8, name)]
        if len(content) <= MAX_INLINE_BYTES:
            fields.append((9, content))
        else:
            self.data.extend(bytes(-len(self.data) % PAGE_BYTES))
            place = {"location": self.data_name, "offset": str(len(self.data)), "length": str(len(content))}
            fields += [(13, message((1, key), (2, value))) for key, value in place.items()]
            fields.append((14, IS_EXTERNAL))
            self.data.extend(content)
        self._tensors.append((5, message(*fields)))
        return name

    def add_node(
        self, operator: str, inputs: Iterable[str], outputs: Sequence[str], *, is_extension: bool = True,
        attributes: dict[str, int | float] | None = None,
    ) -> str:  # fmt: skip
        """Adds an operator and returns the name of its first output."""
        fields: list[Field] = [*((1, name) for name in inputs), *((2, name) for name in outputs), (4, operator)]
        for name, value in (attributes or {}).items():
            kind: tuple[Field, Field] = ((3, value), (20, INTEGER_ATTRIBUTE))
            if isinstance(value, float):
                kind = ((2, value), (20, FLOAT_ATTRIBUTE))
            fields.append((5, message((1, name), *kind)))
        fields.append((7, EXTENSION_DOMAIN if is_extension else ""))
        self._nodes.append((1, message(*fields)))
        return outputs[0]

    def encode(self, input_name: str, output_name: str, sizes: Sequence[str | int]) -> bytes:
        """Encodes the model; input and output are numbers of these sizes, where a name stands for any size."""
        shape = message(*((1, message((1, size) if isinstance(size, int) else (2, size))) for size in sizes))
        value_type = message((1, message((1, DATA_TYPES["float32"]), (2, shape))))
        values = [(11, message((1, input_name), (2, value_type))), (12, message((1, output_name), (2, value_type)))]
        graph = message(*self._nodes, (2, "encoder"), *self._tensors, *values)
        opsets = [
            message((1, domain), (2, version)) for domain, version in (("", OPSET_VERSION), (EXTENSION_DOMAIN, 1))
        ]
        return message((1, IR_VERSION), *((8, opset) for opset in opsets), (7, graph))
