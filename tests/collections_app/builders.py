"""Creates collections; defines the type of the fixture `document_loader`."""

from collections.abc import Callable
from typing import Any

from collections_app import embed
from collections_app.models import Collection, Version

DocumentLoader = Callable[..., Version]


def make_collection(name: str, **columns: Any) -> Collection:
    chunk_settings = {"chunk_size": 200, "chunk_overlap": 40}
    return Collection.objects.create(name=name, **{"space": embed.default_space(), **chunk_settings, **columns})
