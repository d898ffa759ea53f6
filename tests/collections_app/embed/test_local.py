"""The embedding models that come with the product."""

import math
import mmap
import os
import signal
import socket
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy
import pytest
import wordllama as wordllama_package
from safetensors.numpy import save_file

from collections_app.embed import EmbeddingMisconfigured, local_model, vector_checks
from collections_app.embed.local_model import LOCAL_MODELS, LocalModel, LocalProvider
from collections_app.embed.spaces import PROBE_TEXT

UNUSUAL_TEXTS = ["", " \n", "\0", "\ud800", "🦕", "中文句子", "x" * 8000, ".", "́"]


@pytest.fixture
def wordllama() -> LocalProvider:
    return LocalProvider(local_model.get_local_model(None))


@pytest.fixture
def letters_model(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Adds a second model; the list collects the names of the threads that load it."""
    loading_threads: list[str] = []

    def load() -> Callable[[list[str]], Any]:
        loading_threads.append(threading.current_thread().name)
        return lambda texts: numpy.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=float)

    letters = LocalModel(name="letters", dimensions=4, load=load, document_prefix="aa ", query_prefix="bb ")
    monkeypatch.setitem(LOCAL_MODELS, letters.name, letters)
    monkeypatch.setattr(local_model, "_encoders", {})
    return loading_threads


def test_each_text_gets_a_unit_vector(wordllama: LocalProvider):
    for vector in wordllama.embed_documents(UNUSUAL_TEXTS):
        assert len(vector) == wordllama.dimensions == 256
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)


def test_blank_text_gets_the_vector_of_a_full_stop(wordllama: LocalProvider):
    assert wordllama.embed_documents(["", "  "]) == wordllama.embed_documents([".", "."])


def test_similar_texts_are_near(wordllama: LocalProvider):
    toner_vector, pump_vector, printer_question_vector = wordllama.embed_documents(
        ["The printer is out of toner.", "The pump lost its pressure.", "Why is the printer not printing?"]
    )

    assert numpy.dot(toner_vector, printer_question_vector) > numpy.dot(pump_vector, printer_question_vector) + 0.2


def test_order_and_batch_do_not_change_vectors(wordllama: LocalProvider):
    texts = ["one", "a much longer text " * 40, "two", "three words here", "x" * 8000] * 3

    batch_vectors = wordllama.embed_documents(texts)

    assert batch_vectors == [wordllama.embed_query(text) for text in texts]


def test_vectors_equal_those_of_the_library():
    original_model = wordllama_package.WordLlama.load(
        cache_dir=Path(wordllama_package.__file__).parent, disable_download=True
    )
    encode = local_model.load_wordllama()
    vocabulary = [*UNUSUAL_TEXTS, *PROBE_TEXT.split()]
    rng = Random(19)
    texts = [vector_checks.sendable_text(" ".join(rng.choices(vocabulary, k=rng.randrange(1, 60)))) for _ in range(300)]

    for start in range(0, len(texts), 10):
        batch = texts[start : start + 10]
        expected_vectors = original_model.embed(batch)
        vectors = encode(batch)
        assert vectors.dtype == expected_vectors.dtype and vectors.tobytes() == expected_vectors.tobytes()


def write_matrix(path: Path) -> numpy.ndarray:
    matrix = numpy.arange(12, dtype=numpy.float16).reshape(3, 4)
    save_file({"first": numpy.zeros(3), "matrix": matrix}, path)
    return matrix


def test_matrix_is_mapped_from_its_file_so_that_processes_share_its_memory(tmp_path: Path):
    matrix = write_matrix(tmp_path / "file")

    mapped_matrix = local_model.map_matrix(tmp_path / "file", "matrix")
    assert numpy.array_equal(mapped_matrix, matrix) and mapped_matrix.dtype == matrix.dtype
    assert not mapped_matrix.flags.writeable and not mapped_matrix.flags.owndata
    assert isinstance(mapped_matrix.base.base, mmap.mmap)


@pytest.mark.parametrize("remaining_bytes", [0, 5, 40, -1])
def test_truncated_matrix_file_is_refused(tmp_path: Path, remaining_bytes: int):
    write_matrix(tmp_path / "file")
    (tmp_path / "file").write_bytes((tmp_path / "file").read_bytes()[:remaining_bytes])

    with pytest.raises(ValueError):  # noqa: PT011  (of JSON or of the mapping)
        local_model.map_matrix(tmp_path / "file", "matrix")


def test_local_model_needs_no_network(monkeypatch: pytest.MonkeyPatch, wordllama: LocalProvider):
    monkeypatch.setattr(local_model, "_encoders", {})
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("opened a connection"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: pytest.fail("looked up a name"))

    assert len(wordllama.embed_query("offline")) == 256


def test_second_model_can_be_registered(letters_model: list[str]):
    second_provider = LocalProvider(local_model.get_local_model("letters"))

    assert second_provider.embed_documents(["a", "bb"]) == [
        [1, 0, 0, 0],
        pytest.approx([math.sqrt(0.5), math.sqrt(0.5), 0, 0]),
    ]
    assert second_provider.embed_query("") == [0, 1, 0, 0]


def test_concurrent_threads_load_the_model_once(letters_model: list[str]):
    barrier = threading.Barrier(8)

    def embed_query() -> None:
        barrier.wait()
        LocalProvider(local_model.get_local_model("letters")).embed_query("a")

    threads = [threading.Thread(target=embed_query) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(letters_model) == 1


def test_forked_child_does_not_wait_for_a_thread_of_its_parent(monkeypatch: pytest.MonkeyPatch):
    is_loading, may_finish, parent_pid = threading.Event(), threading.Event(), os.getpid()

    def load() -> Callable[[list[str]], Any]:
        if os.getpid() == parent_pid:
            is_loading.set()
            may_finish.wait(10)
        return lambda texts: numpy.ones((len(texts), 4))

    monkeypatch.setitem(LOCAL_MODELS, "slow", LocalModel(name="slow", dimensions=4, load=load))
    thread = threading.Thread(target=LocalProvider(local_model.get_local_model("slow")).embed_query, args=["a"])
    thread.start()
    assert is_loading.wait(10)

    exit_code = run_in_fork(lambda: LocalProvider(local_model.get_local_model("slow")).embed_query("a") == [0.5] * 4)
    may_finish.set()
    thread.join()

    assert exit_code == 0


def test_unknown_model_error_lists_the_known_models():
    with pytest.raises(EmbeddingMisconfigured, match="SVC_EMBEDDING_MODEL to one of: wordllama"):
        local_model.get_local_model("gpt-9")


def run_in_fork(condition: Callable[[], bool]) -> int:
    """Returns the exit status of a forked child, which is 0 if the condition is true there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # for a fork in a process with threads
        child_pid = os.fork()
    if child_pid == 0:
        signal.alarm(5)
        os._exit(0 if condition() else 1)
    return os.waitpid(child_pid, 0)[1]
