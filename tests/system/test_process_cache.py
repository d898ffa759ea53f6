"""Caches of a process respect their limit of weight, and one call clears all."""

import threading

import pytest

from collections_app.lexical import tokens
from system import process_cache
from system.process_cache import WeightedCache

Texts = WeightedCache[str, str]


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> Texts:
    monkeypatch.setattr(process_cache, "_clears", dict(process_cache._clears))
    return WeightedCache("a test", limit=10, weigh=lambda key, item: len(key) + len(item))


def test_least_recently_used_item_is_evicted(texts: Texts):
    for key in "abc":
        texts.put(key, "11")
    assert texts.get("a") == "11"
    texts.put("d", "11")
    assert [texts.get(key) for key in "abcd"] == ["11", None, "11", "11"]
    assert texts.weight == 9


def test_item_over_the_limit_is_not_stored(texts: Texts):
    texts.put("a", "1")
    assert texts.get_or_make("b", lambda: "1" * 10) == "1" * 10
    assert (texts.get("a"), texts.get("b"), texts.weight) == ("1", None, 2)


def test_replaced_item_counts_once(texts: Texts):
    for item in ("1234", "12", "1" * 10):
        texts.put("a", item)
    assert (texts.get("a"), texts.weight) == (None, 0)


def test_clear_all_clears_every_cache(texts: Texts):
    texts.put("a", "1")
    process_cache.clear_all()
    assert (texts.get("a"), texts.weight) == (None, 0)


def test_duplicate_cache_name_is_refused(texts: Texts):
    with pytest.raises(AssertionError):
        process_cache.register("a test", texts.clear)


def test_weight_is_correct_with_threads(texts: Texts):
    def use() -> None:
        for number in range(3_000):
            texts.get_or_make(str(number % 7), lambda number=number: "1" * (number % 5))  # type: ignore[misc]

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts.weight == sum(weight for _, weight in texts._items.values()) <= texts.limit


def test_weight_covers_wide_characters():
    tokens.prepare_words("".join(map(chr, (*range(0x20, 0xD800), *range(0xE000, 0x30000)))))
    assert len(tokens._SPACE_TABLE) <= tokens.MAX_CACHED_CHARACTERS
