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


def is_target_space(space: EmbeddingSpace, collection: Collection) -> bool:
    """Whether this is that space, as far as this is known without a request to the provider."""
    if not embed.chooses_models():
        return embed.is_default(space)
    return (space.provider, space.model) == ("local", _best_model(collection))


def review_model(collection_id: str) -> None:
    """Starts to re-embed the collection if its passages now need another model. The caller has locked its row."""
    if embed.chooses_models():
        apply_choice(Collection.objects.select_related("space", "next_space").get(pk=collection_id))


def apply_choice(collection: Collection) -> None:
    """Starts to re-embed the collection unless its model, or the next one, is the one that it should have.

    Without a setting, a collection whose model is not chosen by language, such as a provider's, keeps it.
    """
    space = collection.next_space or collection.space
    model = embed.find_local_model(space)
    is_chosen = model is not None and (model.language or model == embed.get_local_model(None))
    may_change = embed.chooses_models() and (is_chosen or collection.embedding_model_choice)
    if may_change and not is_target_space(space, collection):
        reembedding.start_reembedding(collection, target_space(collection))


def _best_model(collection: Collection) -> str:
    if collection.embedding_model_choice in embed.LOCAL_MODELS:
        return collection.embedding_model_choice
    if not collection.is_new:
        current_model = (collection.next_space or collection.space).model
        models = {model.language: model.name for model in embed.LOCAL_MODELS.values() if model.language}
        counts = dict(fetch_rows(CHUNK_COUNTS_SQL, {"collection": collection.pk, "languages": list(models)}))
        for language, name in models.items():
            min_share = MIN_KEPT_SHARE if name == current_model else MIN_LANGUAGE_SHARE
            if counts.get(language, 0) >= min_share * counts.get("", 0) > 0:
                return name
    return embed.get_local_model(None).name
