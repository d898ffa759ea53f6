"""Chooses a local model for each collection, by its setting or by the languages of its passages.

A collection starts with the default model. A load that makes another one better starts the re-embedding.
"""

from collections_app import embed
from collections_app.lexical.term_statistics import LANGUAGE_TERM_SQL
from collections_app.models import Collection, EmbeddingSpace
from collections_app.vectors import reembedding
from system.plain_sql import fetch_rows

# The share of passages in its language that a model needs, and the lower share that keeps it: a collection near the
# limit does not change with each document.
MIN_LANGUAGE_SHARE = 0.9
MIN_KEPT_SHARE = 0.8

# An empty language stands for all passages.
CHUNK_COUNTS_SQL = f"""
    SELECT '', chunks FROM term_count WHERE collection_id = %(collection)s AND term = 0
    UNION ALL SELECT language, chunks FROM unnest(%(languages)s::text[]) AS language
    JOIN term_count ON collection_id = %(collection)s
        AND term = {LANGUAGE_TERM_SQL.format(collection="%(collection)s::text", configuration="language")}
"""


def target_space(collection: Collection) -> EmbeddingSpace:
    """Returns the space that the collection should have."""
    if not embed.chooses_models():
        return embed.default_space()
    return embed.local_space(_best_model(collection))


def has_target_space(collection: Collection) -> bool:
    """Whether the collection has that space, as far as this is known without a request to the provider."""
    if not embed.chooses_models():
        return embed.is_default(collection.space)
    return collection.space.model == _best_model(collection) and collection.space.provider == "local"


def review_model(collection_id: str) -> None:
    """Starts to re-embed the collection if its passages now need another model. The caller has locked its row."""
    if embed.chooses_models():
        apply_choice(Collection.objects.select_related("space", "next_space").get(pk=collection_id))


def apply_choice(collection: Collection) -> None:
    """Starts to re-embed the collection unless its model, or the next one, is the one that it should have.

    Without a setting, a collection whose model is not chosen by language, such as a provider's, keeps it.
    """
    space = collection.next_space or collection.space
    choices = {collection.embedding_model_choice, embed.get_local_model(None).name, *_models_by_language().values()}
    is_chosen = space.provider == "local" and space.model in choices
    if not embed.chooses_models() or not (is_chosen or collection.embedding_model_choice):
        return
    model = _best_model(collection)
    if (space.provider, space.model) != ("local", model):
        reembedding.start_reembedding(collection, embed.local_space(model))


def _models_by_language() -> dict[str, str]:
    return {model.language: model.name for model in embed.LOCAL_MODELS.values() if model.language}


def _best_model(collection: Collection) -> str:
    if collection.embedding_model_choice in embed.LOCAL_MODELS:
        return collection.embedding_model_choice
    models = _models_by_language()
    current_space = None if collection.is_new else collection.next_space or collection.space
    parameters = {"collection": collection.pk, "languages": list(models)}
    counts = {} if collection.is_new else dict(fetch_rows(CHUNK_COUNTS_SQL, parameters))
    for language, name in models.items():
        is_current = current_space is not None and current_space.model == name
        min_share = MIN_KEPT_SHARE if is_current else MIN_LANGUAGE_SHARE
        if counts.get(language, 0) >= min_share * counts.get("", 0) > 0:
            return name
    return embed.get_local_model(None).name
