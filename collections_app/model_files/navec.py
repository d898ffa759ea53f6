"""Word vectors for Russian (navec), in files that can be searched without loading them.

The package contains a tar file with the words and their counts, and with the vectors: each consists of 100 parts of
three dimensions, and each part is one of 256 centroids.
"""

import gzip
import hashlib
import tarfile
from pathlib import Path
from typing import Any

import numpy

from . import ModelPackage

TAR_NAME = "data/emb/navec_news_v1_1B_250K_300d_100q.tar"
# Weights of words are inverse document frequencies, for documents of this many words.
DOCUMENT_WORDS = 200
MIN_FREQUENCY = 1e-9
UNKNOWN_WORD = "<unk>"


def word_hash(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")


def decode_vectors(centroids: Any, codes: Any) -> Any:
    """Returns the vectors of words from the codes of their parts."""
    return centroids[numpy.arange(codes.shape[1]), codes].reshape(len(codes), -1)


def _convert(folder: Path, target: Path) -> None:
    with tarfile.open(folder / TAR_NAME) as archive:
        vocabulary, vectors = [_read(archive, name) for name in ("vocab.bin", "pq.bin")]
    vocabulary = gzip.decompress(vocabulary)
    count = int.from_bytes(vocabulary[:4], "little")
    counts = numpy.frombuffer(vocabulary, dtype="<u4", offset=4, count=count)
    words = vocabulary[4 + 4 * count :].decode().split("\n")
    _, dimensions, part_count, centroid_count = numpy.frombuffer(vectors, dtype="<u4", count=4).tolist()
    codes = numpy.frombuffer(vectors, dtype=numpy.uint8, offset=16, count=count * part_count).reshape(count, part_count)
    centroids = numpy.frombuffer(vectors, dtype="<f4", offset=16 + codes.size)
    centroids = centroids.reshape(part_count, centroid_count, dimensions // part_count)
    frequencies = counts / counts.sum()
    weights = numpy.log1p(1 / (DOCUMENT_WORDS * numpy.maximum(frequencies, MIN_FREQUENCY)))
    # The expected vector of a text: what all texts have in common.
    shares = frequencies * weights
    common_vector = numpy.zeros(dimensions)
    for start in range(0, count, 10_000):
        rows = slice(start, start + 10_000)
        common_vector += shares[rows] @ decode_vectors(centroids, codes[rows])
    hashes = numpy.array([word_hash(word) for word in words], dtype=numpy.uint64)
    order = hashes.argsort()
    arrays = {
        "hashes": hashes[order],
        "weights": weights[order].astype(numpy.float32),
        "codes": codes[order],
        "centroids": centroids,
        "common_direction": (common_vector / numpy.linalg.norm(common_vector)).astype(numpy.float32),
    }
    for name, array in arrays.items():
        numpy.save(target / f"{name}.npy", array)


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


NAVEC = ModelPackage(
    distribution="natasha",
    folder_name="natasha",
    hashes={TAR_NAME: "f07270833d78523edc5781538d67038e95b43975e4a7ae757c693b687f9cbfca"},
    convert=_convert,
)
