"""In charge of what stands beside ours on the same vectors: a plain pgvector table, and chromadb in its own process."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import numpy
from django.db import connection

from bench.collections.cost import Cost, cost
from bench.collections.varied import FILTERS
from collections_app.models import Collection
from collections_app.search import vector_retrieval
from config.env import ROOT

HERE = Path(__file__).parent
WANTED = 10


@dataclass(frozen=True)
class Vectors:
    """Of one collection, with what its documents are filtered by, and of the questions asked of it."""

    ids: Any
    shares: Any
    matrix: Any
    asked: Any

    def least(self, below: int) -> list[float]:
        """For each question, how near the tenth best is of those that the filter keeps."""
        kept = self.matrix[self.shares < below]
        count = min(WANTED, len(kept))
        return [float(numpy.partition(kept @ each, -count)[-count]) for each in self.asked]

    def recall(self, found: Sequence[Sequence[int]], below: int) -> float:
        place = {int(each): number for number, each in enumerate(self.ids)}
        reached = []
        for asked, ids, least in zip(self.asked, found, self.least(below), strict=True):
            near = [self.matrix[place[each]] @ asked for each in ids if each in place]
            reached.append(sum(1 for each in near if each >= least - 1e-4) / WANTED)
        return mean(reached)


def vectors_of(collection: Collection, asked: Sequence[Sequence[float]]) -> Vectors:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT chunk_id, (metadata->>'share')::int, embedding::real[] FROM chunk_vector AS one"
            " JOIN document_version AS version ON version.id = one.version_id WHERE one.collection_id = %s",
            [collection.pk],
        )
        rows = cursor.fetchall()
    matrix = numpy.array([row[2] for row in rows], dtype=numpy.float32)
    matrix /= numpy.linalg.norm(matrix, axis=1, keepdims=True)
    return Vectors(
        ids=numpy.array([row[0] for row in rows]),
        shares=numpy.array([row[1] for row in rows]),
        matrix=matrix,
        asked=numpy.array(asked, dtype=numpy.float32),
    )


def report(collection: Collection, asked: Sequence[Sequence[float]], folder: Path) -> None:
    known = vectors_of(collection, asked)
    _report_plain(collection, known)
    _report_chromadb(known, folder)


def _line(name: str, who: str, spent: Cost, recall: float) -> None:
    print(f"{name:<8}{who:<9}{spent.wall_ms:>9.1f}{spent.cpu_ms:>17.1f}{'':>15}{recall:>17.3f}", flush=True)


def _report_plain(collection: Collection, known: Vectors) -> None:
    """One table, one HNSW index over all, metadata beside the vector: what most would write first."""
    _make_plain(collection.space.dimensions)
    for name, below in FILTERS.items():
        condition = "" if below == 100 else f" AND (metadata->>'share')::int < {below}"
        statement = (
            f"SELECT id FROM plain WHERE collection = %s{condition} ORDER BY embedding <=> %s::vector LIMIT {WANTED}"
        )
        found: list[list[int]] = []

        def work(vector: Any, statement: str = statement, found: list[list[int]] = found) -> None:
            with connection.cursor() as cursor:
                cursor.execute(statement, [collection.pk, vector_retrieval.written(vector.tolist())])
                found.append([row[0] for row in cursor.fetchall()])

        spent = cost(work, list(known.asked))
        _line(name, "plain", spent, known.recall(found[-len(known.asked) :], below))


def _make_plain(dimensions: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE TABLE plain AS SELECT chunk_id AS id, v.collection_id AS collection, version.metadata,
                embedding::vector({dimensions}) AS embedding
            FROM chunk_vector v JOIN document_version version ON version.id = v.version_id;
            SET maintenance_work_mem = '1GB';
            CREATE INDEX ON plain USING hnsw (embedding vector_cosine_ops);
            CREATE INDEX ON plain (collection);
            ANALYZE plain
            """
        )


def _report_chromadb(known: Vectors, folder: Path) -> None:
    numpy.savez(folder / "vectors.npz", ids=known.ids, shares=known.shares, matrix=known.matrix, asked=known.asked)
    # Its packages would change versions of ours, so they live apart.
    python = folder / "chromadb" / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(python.parent.parent)], check=True)
    lock = HERE / "requirements-chromadb.txt"
    install = [*uv, "pip", "sync", "--quiet", "--system-certs", "--require-hashes", "--python", str(python), str(lock)]
    subprocess.run(install, check=True)
    printed = subprocess.run(
        [str(python), str(HERE / "chroma.py"), str(folder), json.dumps(FILTERS)],
        cwd=ROOT, stdout=subprocess.PIPE, check=True,
    ).stdout  # fmt: skip
    for name, row in json.loads(printed).items():
        _line(name, "chromadb", Cost(row["wall_ms"], row["cpu_ms"]), known.recall(row["found"], FILTERS[name]))
