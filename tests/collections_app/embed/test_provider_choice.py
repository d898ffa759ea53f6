"""Source code checks: no request can choose the embedding provider or read a vector."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import IntegrityError, connection, transaction

from collections_app.models import ChunkVector
from config.env import ROOT
from tests.collections_app import vector_rows

SOURCE_PATHS = sorted(path for path in (ROOT / "collections_app").rglob("*.py") if "migrations" not in path.parts)
# The modules that may name a model, a URL or a key; all others reach a provider through a space.
EMBED_FOLDER = ROOT / "collections_app" / "embed"
PUBLIC_FUNCTIONS = {
    "shared_breaker",
    "default_space",
    "is_slow",
    "reset_providers",
    "retire_space",
    "Embedder",
    "LOCAL_MODELS",
}
# The modules that read or write vectors; none of them responds to requests.
VECTOR_MODULES = {"models", "vectors", "search/vector_retrieval.py"}
FORBIDDEN_WORDS = {"api_key", "base_url", "embedding_model", "embedding_provider", "dimensions", "provider"}


def sources_outside_embed() -> list[Path]:
    return [path for path in SOURCE_PATHS if EMBED_FOLDER not in path.parents]


def path_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imported_names(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


@pytest.mark.parametrize("path", sources_outside_embed(), ids=path_id)
def test_provider_is_only_used_through_a_space(path: Path):  # C28
    for module, name in imported_names(path):
        if module == "collections_app.embed":
            assert name in PUBLIC_FUNCTIONS or name.startswith("Embedding"), f"{name} of embed"
        assert not module.startswith("collections_app.embed."), module
        assert module.split(".")[0] not in ("openai", "wordllama"), module
    assert "settings.EMBEDDING" not in path.read_text()


@pytest.mark.parametrize("path", sources_outside_embed(), ids=path_id)
def test_only_the_embed_package_creates_spaces(path: Path):  # C28
    source = path.read_text()

    assert "EmbeddingSpace(" not in source.replace("class EmbeddingSpace(", "")
    assert "EmbeddingSpace.objects.create" not in source and "EmbeddingSpace.objects.get_or_create" not in source


def test_no_request_parameter_names_provider_model_or_url():  # C28
    path = ROOT / "collections_app" / "http" / "parameters.py"
    string_literals = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert string_literals & (FORBIDDEN_WORDS | {"model", "space", "space_id"}) == set()


@pytest.mark.parametrize("path", sources_outside_embed(), ids=path_id)
def test_only_vector_modules_read_vectors(path: Path):  # C50
    relative_path = path.relative_to(ROOT / "collections_app")
    if not VECTOR_MODULES.isdisjoint({relative_path.parts[0], str(relative_path)}):
        return
    source = path.read_text()

    assert "chunk_vector" not in source.replace("chunk_vector_", "").replace("chunk_vectors", "")
    if "ChunkVector" in source:  # only counts them
        tree = ast.parse(source)
        assert "embedding" not in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert "embedding" not in {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}


@pytest.mark.django_db
@pytest.mark.parametrize(("dimensions", "length"), [(8, 7), (7, 7), (7, 8)])
def test_vectors_of_another_length_are_refused(dimensions: int, length: int):  # C54
    space = vector_rows.make_space("letters-a")
    version = vector_rows.make_version(vector_rows.make_collection(space), "doc-1", chunk_count=1)
    vector = ChunkVector.objects.get(version=version)
    ChunkVector.objects.filter(version=version).delete()

    vector.dimensions, vector.embedding = dimensions, [0.5] * length
    with pytest.raises(IntegrityError):
        store_vector(vector)


def store_vector(vector: ChunkVector) -> None:
    with transaction.atomic():
        vector.save(force_insert=True)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
