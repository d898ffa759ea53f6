"""Process caches respect their weight limit, and one call clears all of them."""

import threading

import pytest

from collections_app.lexical import tokens
from system import process_cache
from system.process_cache import WeightedCache

TextCache = WeightedCache[str, str]


@pytest.fixture
def text_cache(monkeypatch: pytest.MonkeyPatch) -> TextCache:
    monkeypatch.setattr(process_cache, "_clear_functions", dict(process_cache._clear_functions))
    return WeightedCache("a test", max_weight=10, weigh=lambda key, item: len(key) + len(item))


def test_least_recently_used_item_is_evicted(text_cache: TextCache):
    for key in "abc":
        text_cache.put(key, "11")
    assert text_cache.get("a") == "11"
    text_cache.put("d", "11")
    assert [text_cache.get(key) for key in "abcd"] == ["11", None, "11", "11"]
    assert text_cache.weight == 9


def test_item_over_the_limit_is_not_stored(text_cache: TextCache):
    text_cache.put("a", "1")
    assert text_cache.get_or_make("b", lambda: "1" * 10) == "1" * 10
    assert (text_cache.get("a"), text_cache.get("b"), text_cache.weight) == ("1", None, 2)


def test_replaced_item_counts_once(text_cache: TextCache):
    for item in ("1234", "12", "1" * 10):
        text_cache.put("a", item)
    assert (text_cache.get("a"), text_cache.weight) == (None, 0)


def test_clear_all_clears_every_cache(text_cache: TextCache):
    text_cache.put("a", "1")
    process_cache.clear_all()
    assert (text_cache.get("a"), text_cache.weight) == (None, 0)


def test_duplicate_cache_name_is_refused(text_cache: TextCache):
    with pytest.raises(AssertionError):
        process_cache.register("a test", text_cache.clear)


def test_weight_is_correct_with_threads(text_cache: TextCache):
    def use_cache() -> None:
        for number in range(3_000):
            text_cache.get_or_make(str(number % 7), lambda number=number: "1" * (number % 5))  # type: ignore[misc]

    threads = [threading.Thread(target=use_cache) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert text_cache.weight == sum(weight for _, weight in text_cache._items.values()) <= text_cache.max_weight


def test_weight_covers_wide_characters():
    tokens.prepare_words("".join(map(chr, (*range(0x20, 0xD800), *range(0xE000, 0x30000)))))
    assert len(tokens._SPACE_TABLE) <= tokens.MAX_CACHED_CHARACTERS
