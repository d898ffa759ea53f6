"""Asks chromadb for what ours was asked. Runs with chromadb's own packages: it imports nothing of the product."""

import json
import sys
import time
from pathlib import Path
from typing import Any

import chromadb  # type: ignore[import-not-found]
import numpy

WANTED = 10


def filled(folder: Path, given: Any) -> Any:
    client = chromadb.PersistentClient(str(folder / "store"), chromadb.Settings(anonymized_telemetry=False))
    made = client.create_collection("bench", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    step = min(5_000, client.get_max_batch_size())
    for start in range(0, len(given["ids"]), step):
        part = slice(start, start + step)
        made.add(
            ids=[str(each) for each in given["ids"][part]],
            embeddings=given["matrix"][part],
            metadatas=[{"share": int(each)} for each in given["shares"][part]],
        )
    return made


def asked_of(collection: Any, vectors: Any, below: int) -> dict[str, Any]:
    where = None if below == 100 else {"share": {"$lt": below}}

    def ask(vector: Any) -> list[int]:
        found = collection.query(query_embeddings=[vector], n_results=WANTED, where=where, include=[])
        return [int(each) for each in found["ids"][0]]

    for each in vectors[:5]:
        ask(each)
    cpu, began = time.process_time(), time.perf_counter()
    found = [ask(each) for each in vectors]
    took, used = time.perf_counter() - began, time.process_time() - cpu
    return {"found": found, "wall_ms": 1000 * took / len(found), "cpu_ms": 1000 * used / len(found)}


def main(folder: Path, filters: dict[str, int]) -> None:
    given = numpy.load(folder / "vectors.npz")
    began = time.perf_counter()
    collection = filled(folder, given)
    print(f"chromadb {chromadb.__version__}, filled in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    print(json.dumps({name: asked_of(collection, given["asked"], below) for name, below in filters.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
