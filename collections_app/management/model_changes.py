"""Re-embeds collections after a provider has changed a model under the same name."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import transaction
from django.db.models import Q

from collections_app import embed
from collections_app.models import Collection, EmbeddingSpace
from collections_app.vectors import reembedding
from system.errors import NotFound, ServiceError


def embed_anew() -> list[Collection]:
    """The collections that are embedded anew by the model of now: those whose space is no model's any more.

    Spaces are retired before anything is begun, so what is broken off here is found by the next call.
    """
    changed = list(_changed())
    with transaction.atomic():
        for space in changed:
            embed.retire(space)
    target = embed.default_space()
    lost = Q(space__provider=embed.RETIRED, next_space=None) | Q(next_space__provider=embed.RETIRED)
    return [each for each in Collection.objects.filter(lost, deleted_at__isnull=True) if _begun(each, target)]


def _changed() -> Iterator[EmbeddingSpace]:
    """Of the spaces that are in use, and the one of new collections; whether that one can be asked must be known."""
    default = embed.default_space()
    if embed.is_changed(default):
        yield default
    live = Collection.objects.filter(deleted_at__isnull=True)
    used = Q(pk__in=live.values("space")) | Q(pk__in=live.values("next_space"))
    for space in EmbeddingSpace.objects.filter(used).exclude(pk=default.pk).exclude(provider=embed.RETIRED):
        try:
            if embed.is_changed(space):
                yield space
        except ServiceError:  # a model that nobody gives any more is no changed one
            continue


def _begun(collection: Collection, target: EmbeddingSpace) -> bool:
    try:
        reembedding.start(collection, target)
    except NotFound:  # deleted meanwhile
        return False
    return True
