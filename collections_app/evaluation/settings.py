"""The settings that decide the ranking of a collection. A change of one of them makes a run due."""

from hashlib import sha256
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Q

from collections_app.models import Collection, Version


def ranking_settings(collection: Collection) -> dict[str, Any]:
    """Returns the settings by name; everything that changes the ranking without a change of documents belongs here.

    Chunk settings and the language take effect when documents are loaded, so this has those of the searched documents.
    """
    searched_versions = Version.objects.filter(~Q(load_settings=""), collection=collection, is_searched=True)
    load_settings = searched_versions.order_by().aggregate(
        values=ArrayAgg("load_settings", distinct=True, default=[], order_by="load_settings")
    )
    return {
        "embedding_model": str(collection.space),
        "alpha": collection.own_alpha,
        # A digest, because the text can be long and only has to be compared.
        "synonyms": sha256(collection.synonyms.encode()).hexdigest()[:16] if collection.synonyms else "",
        "load_settings": load_settings["values"],
    }
