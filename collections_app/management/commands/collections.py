"""`manage.py collections model-changed`: re-embeds collections whose model has changed but kept its name."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.db.models import Q

from collections_app import embed
from collections_app.models import Collection, EmbeddingSpace
from collections_app.vectors import model_choice, reembedding
from system.errors import NotFound, ServiceError


class Command(BaseCommand):
    help = "Re-embed the collections whose embedding model now returns different vectors."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=["model-changed"])

    def handle(self, *_: Any, **__: Any) -> None:
        try:
            collections = reembed_changed_collections()
        except ServiceError as error:
            raise CommandError(str(error)) from None
        if not collections:
            raise CommandError("No model has changed, so there is nothing to re-embed.")
        names = ", ".join(collection.name for collection in collections)
        self.stdout.write(
            f"Re-embedding these collections: {names}. Searches use only keywords until this is complete."
        )


def reembed_changed_collections() -> list[Collection]:
    """Starts to re-embed the collections whose model has changed, and returns them.

    Their spaces are retired first, so another call can complete an interrupted one.
    """
    with transaction.atomic():
        for space in list(_changed_spaces()):
            embed.retire_space(space)
    is_stale = Q(space__provider=embed.RETIRED_PROVIDER, next_space=None) | Q(
        next_space__provider=embed.RETIRED_PROVIDER
    )
    collections = Collection.objects.filter(is_stale, deleted_at__isnull=True)
    started_collections = []
    for collection in collections:
        with suppress(NotFound):  # deleted in between
            reembedding.start_reembedding(collection, model_choice.target_space(collection))
            started_collections.append(collection)
    return started_collections


def _changed_spaces() -> Iterator[EmbeddingSpace]:
    """Yields the default space and used spaces whose model has changed. The default provider must be reachable."""
    default = embed.default_space()
    if embed.is_model_changed(default):
        yield default
    existing_collections = Collection.objects.filter(deleted_at__isnull=True)
    is_used = Q(pk__in=existing_collections.values("space")) | Q(pk__in=existing_collections.values("next_space"))
    for space in EmbeddingSpace.objects.filter(is_used).exclude(pk=default.pk).exclude(provider=embed.RETIRED_PROVIDER):
        try:
            if embed.is_model_changed(space):
                yield space
        except ServiceError:  # a model that is no longer available does not count as changed
            continue
