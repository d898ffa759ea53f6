"""The models for one language: the transformer for English, the word vectors for Russian."""

import math
from typing import Any
from unicodedata import normalize

import pytest

from collections_app.embed.local_model import LOCAL_MODELS, LocalProvider
from collections_app.embed.vector_checks import cosine
from collections_app.lexical.term_statistics import QueryTerms
from collections_app.models import EmbeddingSpace
from collections_app.search.match import match_score
from tests.collections_app.embed.test_local import UNUSUAL_TEXTS

QUESTIONS = {
    "all-MiniLM-L6-v2": (
        "Why does the machine not print?",
        "Replace the toner of the printer when the lamp is red.",
        "A full mailbox refuses messages.",
    ),
    "navec-news-v1": (
        "Почему не печатает принтер?",
        "Замените картридж, если устройство не печатает документы.",
        "Переполненный почтовый ящик не принимает письма.",
    ),
}


@pytest.fixture(params=QUESTIONS)
def provider(request: Any) -> LocalProvider:
    return LocalProvider(LOCAL_MODELS[request.param])


def test_each_text_gets_a_unit_vector(provider: LocalProvider):
    for vector in provider.embed_documents(UNUSUAL_TEXTS):
        assert len(vector) == provider.dimensions
        assert math.isclose(math.hypot(*vector), 1, abs_tol=1e-6)


def test_order_and_batch_do_not_change_vectors(provider: LocalProvider):
    texts = [text for question in QUESTIONS.values() for text in question] + ["long text " * 200]

    assert provider.embed_documents(texts[::-1])[::-1] == [provider.embed_query(text) for text in texts]


@pytest.mark.parametrize("name", QUESTIONS)
def test_answer_matches_and_other_text_does_not(name: str):
    question, answer, other_text = QUESTIONS[name]
    provider = LocalProvider(LOCAL_MODELS[name])
    query = provider.embed_query(question)
    cosines = [cosine(query, vector) for vector in provider.embed_documents([answer, other_text])]
    space, terms = EmbeddingSpace(provider="local", model=name), QueryTerms(chunk_count=0)
    matches = [match_score(space, terms, vector_score=score, text_score=None) for score in cosines]

    assert matches[0] > 0.3 > matches[1]


def test_decomposed_letters_change_no_vector(provider: LocalProvider):
    text = "Café noir, чёрный копировальный аппарат"
    assert provider.embed_query(normalize("NFD", text)) == provider.embed_query(text)


def test_all_of_a_long_text_counts():
    provider = LocalProvider(LOCAL_MODELS["all-MiniLM-L6-v2"])
    filler = "The pump lost its pressure. " * 60
    vectors = provider.embed_documents([filler, f"{filler}The printer is out of toner. " * 2])

    assert cosine(*vectors) < 0.999


def test_words_are_found_in_any_case_and_with_hyphens():
    provider = LocalProvider(LOCAL_MODELS["navec-news-v1"])

    assert provider.embed_query("ПРИНТЕР") == provider.embed_query("принтер")
    assert cosine(provider.embed_query("принтер-ололошка"), provider.embed_query("принтер")) > 0.9


def test_models_are_mapped_and_not_copied():
    for name in QUESTIONS:
        LocalProvider(LOCAL_MODELS[name]).embed_query("a")
    with open("/proc/self/maps") as maps:
        mapped_names = {line.rsplit("/", 1)[-1].strip() for line in maps if "/converted/" in line}

    assert mapped_names >= {"codes.npy", "rows.npy", "model.bin"}
