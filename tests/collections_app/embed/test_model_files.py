"""The files of local models are converted once, from the expected files only, and the rest is removed."""

import hashlib
import math
import threading
import time
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import pytest

from collections_app.embed import EmbeddingMisconfigured, local_model
from collections_app.embed.local_model import LOCAL_MODELS, LocalModel, LocalProvider
from collections_app.model_files import ModelFilesMissing, ModelPackage, minilm, navec, prepare_files

CONTENT = b"weights"


class FakePackage:
    """An installed package with one model file and its code, in `folder`."""

    def __init__(self, site_packages: Path) -> None:
        self.folder, self.conversion_count = site_packages / "fake_model", 0
        (self.folder / "data").mkdir(parents=True)
        (self.folder / "data" / "weights").write_bytes(CONTENT)
        (self.folder / "code.py").write_text("raise SystemExit")
        info = site_packages / "fake_model-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-model\nVersion: 1\n")

    def convert(self, folder: Path, target: Path) -> None:
        self.conversion_count += 1
        (target / "half").write_bytes((folder / "data" / "weights").read_bytes()[:3])

    def row(self, **columns: Any) -> ModelPackage:
        defaults: dict[str, Any] = {
            "distribution": "fake-model",
            "folder_name": "fake_model",
            "hashes": {"data/weights": hashlib.sha256(CONTENT).hexdigest()},
            "convert": self.convert,
        }
        return ModelPackage(**{**defaults, **columns})


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePackage:
    monkeypatch.syspath_prepend(tmp_path)
    return FakePackage(tmp_path)


def test_files_are_converted_once_and_the_rest_is_removed(package: FakePackage):
    folder = prepare_files(package.row())

    assert prepare_files(package.row()) == folder and package.conversion_count == 1
    assert (folder / "half").read_bytes() == CONTENT[:3]
    assert list(package.folder.iterdir()) == [folder]


def test_a_file_with_another_hash_is_refused_and_kept(package: FakePackage):
    (package.folder / "data" / "weights").write_bytes(b"other weights")

    with pytest.raises(ModelFilesMissing, match="data/weights in fake-model is not the expected file"):
        prepare_files(package.row())
    assert package.conversion_count == 0 and (package.folder / "data" / "weights").exists()


def test_a_conversion_that_was_killed_is_repeated(package: FakePackage):
    def convert_in_part(_: Path, target: Path) -> None:
        (target / "rubbish").touch()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare_files(package.row(convert=convert_in_part))

    assert [path.name for path in prepare_files(package.row()).iterdir()] == ["half"]


def test_concurrent_processes_convert_once(package: FakePackage):
    def convert_slowly(folder: Path, target: Path) -> None:
        time.sleep(0.1)
        package.convert(folder, target)

    threads = [threading.Thread(target=prepare_files, args=[package.row(convert=convert_slowly)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert package.conversion_count == 1


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(28, "No space left on device")])
def test_a_model_without_files_is_unavailable(package: FakePackage, error: OSError, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: Any) -> None:
        raise error

    model = LocalModel(name="fake", dimensions=4, load=lambda: prepare_files(package.row(convert=fail)))  # type: ignore[arg-type,return-value]
    monkeypatch.setattr(local_model, "_encoders", {})
    with pytest.raises(EmbeddingMisconfigured, match=f"{error.strerror}.*python -m collections_app.model_files"):
        LocalProvider(model).embed_query("a")
    with pytest.raises(ModelFilesMissing, match="nowhere is not installed"):
        prepare_files(package.row(distribution="nowhere"))


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "navec-news-v1"])
def test_installed_packages_contain_only_converted_files(name: str):
    LocalProvider(LOCAL_MODELS[name]).embed_query("a")

    for row in (minilm.MINILM, navec.NAVEC):
        assert [path.name for path in row.find_folder().iterdir()] == ["converted"]


def test_graph_computes_what_the_model_defines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(minilm, "LAYER_COUNT", 2)
    tensors = random_tensors(2)
    minilm.EncoderGraph(tensors).write(tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / minilm.GRAPH_NAME)
    tokens = numpy.random.default_rng(2).normal(size=(7, minilm.DIMENSIONS)).astype(numpy.float32)

    (states,) = session.run(None, {"tokens": tokens[numpy.newaxis]})

    expected_states = reference_states(tensors, tokens)
    cosines = (states[0] * expected_states).sum(axis=1)
    cosines /= numpy.linalg.norm(states[0], axis=1) * numpy.linalg.norm(expected_states, axis=1)
    assert cosines.min() > 0.999


def random_tensors(layer_count: int) -> dict[str, Any]:
    generator = numpy.random.default_rng(1)
    size = minilm.DIMENSIONS
    shapes: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": (size,)}
    for number in range(layer_count):
        layer = f"encoder.layer.{number}."
        shapes |= {f"{layer}attention.self.{name}": (size, size) for name in ("query", "key", "value")}
        shapes |= {f"{layer}attention.output.dense": (size, size), f"{layer}attention.output.LayerNorm": (size,)}
        shapes |= {f"{layer}intermediate.dense": (4 * size, size), f"{layer}output.dense": (size, 4 * size)}
        shapes |= {f"{layer}output.LayerNorm": (size,)}
    tensors = {}
    for name, shape in shapes.items():
        spread = 0.1 if len(shape) == 1 else shape[-1] ** -0.5
        tensors[f"{name}.weight"] = (generator.normal(size=shape) * spread + (len(shape) == 1)).astype(numpy.float32)
        tensors[f"{name}.bias"] = (generator.normal(size=shape[:1]) * 0.1).astype(numpy.float32)
    return tensors


def reference_states(tensors: dict[str, Any], tokens: Any) -> Any:
    """BERT as its authors define it, in full precision."""

    def dense(state: Any, name: str) -> Any:
        return state @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(state: Any, name: str) -> Any:
        centered = state - state.mean(axis=-1, keepdims=True)
        scaled = centered / numpy.sqrt((centered**2).mean(axis=-1, keepdims=True) + 1e-12)
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    def attention(state: Any, layer: str) -> Any:
        heads = [
            dense(state, f"{layer}attention.self.{name}").reshape(len(state), minilm.HEAD_COUNT, -1).swapaxes(0, 1)
            for name in ("query", "key", "value")
        ]
        scores = heads[0] @ heads[1].swapaxes(1, 2) / heads[0].shape[-1] ** 0.5
        shares = numpy.exp(scores) / numpy.exp(scores).sum(axis=-1, keepdims=True)
        return (shares @ heads[2]).swapaxes(0, 1).reshape(state.shape)

    state = norm(tokens, "embeddings.LayerNorm")
    for number in range(minilm.LAYER_COUNT):
        layer = f"encoder.layer.{number}."
        attended = dense(attention(state, layer), f"{layer}attention.output.dense")
        state = norm(attended + state, f"{layer}attention.output.LayerNorm")
        expanded = dense(state, f"{layer}intermediate.dense")
        activated = expanded * (1 + numpy.vectorize(math.erf)(expanded / 2**0.5)) / 2
        state = norm(dense(activated, f"{layer}output.dense") + state, f"{layer}output.LayerNorm")
    return state
