"""The content of other collections changes no byte of a caller's responses.

The second world is the first with foreign collections added that hold the same words, files and names; the third has
others of the same names, and traces of what is gone. Ids and times, which the server makes, are written over.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from collections_app.documents import deletion
from collections_app.models import Collection
from tests.collections_app.http.calls import (
    BY_TAG,
    DELETE,
    DELETE_DOCUMENT,
    EIGHT,
    LIST,
    LOAD_FILE,
    LOAD_TEXT,
    MANAGED,
    NAMES,
    RELEVANT,
    Caller,
    by_key,
)
from tests.collections_app.library import add, make
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
OWN = ("The toner is red.", "Paper jams in tray two. " * 60, "A full mailbox refuses mail.", "Toner toner paper.")
SECRET = "Secret of others: the toner is gold."
SERVER_MADE = re.compile(rb"\d{18}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
Work = Callable[[], Any]


def nothing() -> None:
    """The world without others."""


def much() -> None:
    place = make("others", readers=("strangers",), writers=("strangers",))
    for number, text in enumerate((*OWN, SECRET, "Toner and paper, toner and mail. " * 40)):
        add(place, text, doc_id=f"own-{number}", metadata={"type": "manual", "priority": number})
    add(make("more of others", writers=("strangers",)), OWN[0], doc_id="secret", is_loaded=False)


def other_things() -> None:
    place = make("others", writers=("strangers",))
    add(place, "Nothing alike.", doc_id="secret", metadata={"type": "secret"})
    gone = make("more of others", writers=("strangers",))
    add(gone, SECRET)
    deletion.delete_collection(gone)
    make("empty", writers=("strangers",))


WORLDS: dict[str, Callable[[], None]] = {"nothing": nothing, "much": much, "other things": other_things}


@pytest.fixture
def caller(db: Any) -> Caller:
    """Reads and writes `mine`, and nothing else."""
    place = make("mine", writers=("crew",))
    for number, text in enumerate(OWN):
        add(place, text, doc_id=f"own-{number}", metadata={"type": "manual", "priority": number})
    return by_key(make_user("dora", "crew"))


def undone(work: Work) -> Any:
    with transaction.atomic():
        result = work()
        transaction.set_rollback(True)
    return result


def seen(response: Any) -> tuple[int, dict[str, str], bytes]:
    headers = {name: value for name, value in response.headers.items() if name != "X-Request-ID"}
    content = SERVER_MADE.sub(b"MADE", response.content)
    headers["Content-Length"] = str(len(content))
    return response.status_code, headers, content


def answered(request: Work) -> Any:
    return seen(request())


def in_world(world: Callable[[], None], requests: Sequence[Work]) -> list[Any]:
    """What each request gets beside these others; afterwards they are gone, and so is what it did."""

    def work() -> list[Any]:
        world()
        return [undone(partial(answered, request)) for request in requests]

    result: list[Any] = undone(work)
    return result


def same_everywhere(requests: Sequence[Work]) -> list[Any]:
    result = {name: in_world(world, requests) for name, world in WORLDS.items()}
    for number, expected in enumerate(result["nothing"]):
        assert result["much"][number] == expected, number
        assert result["other things"][number] == expected, number
    return result["nothing"]


def sent(caller: Caller, method: str, path: str, body: Any = None, **query: Any) -> Work:
    return lambda: caller.send(method, path, body, **query)


WORDS = some.lists(
    some.sampled_from(["toner", "paper", "mail", "red", "gold", "secret", "tray"]), min_size=1, max_size=4
)
FILTERS = ["", "type=manual", "priority>1", "type=secret", "priority=2^ORtype=manual", "typeISEMPTY"]
SEARCH = some.fixed_dictionaries(
    {
        "collection_names": some.just(["mine"]),
        "query": WORDS.map(" ".join),
        "metadata": some.sampled_from(FILTERS),
        "mode": some.sampled_from(["hybrid", "text", "vector"]),
        "k": some.integers(1, 8),
    }
)


@pytest.mark.nightly
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(searches=some.lists(SEARCH, min_size=15, max_size=20))
def test_many_searches_find_scores_and_ranks_the_same(caller: Caller, searches: list[Any]):  # C04
    result = same_everywhere([sent(caller, "POST", RELEVANT, search) for search in searches])
    assert {status for status, _, _ in result} == {200}


def foreign_calls(caller: Caller, name: str) -> list[Work]:
    return [
        sent(caller, "GET", RELEVANT, collection_names=name, query="toner"),
        sent(caller, "GET", RELEVANT, collection_names=["mine", name, name], query="toner"),
        sent(caller, "GET", BY_TAG, collection_name=name, tag_info="type=manual"),
        sent(caller, "GET", NAMES, collection_name=name),
        sent(caller, "POST", LOAD_TEXT, {"text": OWN[0]}, collection_name=name),
        lambda: caller.upload(OWN[0].encode(), "a.txt", collection_name=name),
        sent(caller, "DELETE", DELETE, collection_name=name),
        sent(caller, "DELETE", DELETE_DOCUMENT, collection_name=name, id_value="own-1"),
    ]


def own_calls(caller: Caller) -> list[Work]:
    same_bytes = {"text": OWN[0], "metadata": {"type": "manual", "priority": 0}}
    return [
        sent(caller, "GET", LIST),
        sent(caller, "GET", MANAGED),
        sent(caller, "GET", NAMES, collection_name="mine"),
        sent(caller, "GET", BY_TAG, collection_name="mine"),
        # The bytes of others are new here, one's own are not.
        sent(caller, "POST", LOAD_TEXT, {"text": SECRET}, collection_name="mine"),
        sent(caller, "POST", LOAD_TEXT, same_bytes, collection_name="mine"),
        sent(caller, "POST", LOAD_TEXT, {"text": "New.", "doc_id": "secret"}, collection_name="mine"),
        sent(caller, "DELETE", DELETE_DOCUMENT, collection_name="mine", id_value="secret"),
        sent(caller, "DELETE", DELETE_DOCUMENT, collection_name="mine", id_value="never there"),
        sent(caller, "DELETE", DELETE_DOCUMENT, collection_name="mine", id_value="own-1"),
    ]


def searches(caller: Caller) -> list[Work]:
    return [
        sent(caller, "GET", RELEVANT, collection_names="mine", query=query, metadata=filter, mode=mode, k=k)
        for query, k in (("toner", 5), ("gold secret toner", 2), ("paper tray mail red", 3))
        for filter in FILTERS[:3]
        for mode in ("hybrid", "text", "vector")
    ]


def test_data_of_others_changes_no_response(caller: Caller):  # C02, C03, C04, C06, C12, C51
    names = ("others", "more of others", "empty", "never there")
    foreign = [foreign_calls(caller, name) for name in names]
    result = same_everywhere([*own_calls(caller), *searches(caller), *(call for calls in foreign for call in calls)])

    own, of_foreign = result[:-32], result[-32:]
    assert [status for status, _, _ in own] == [200, 200, 200, 200, 201, 200, 201, 404, 404, 200] + 27 * [200]
    assert own[0][2].count(b"collection_name") == own[1][2].count(b"collection_name") == 1
    assert {status for status, _, _ in of_foreign} == {404}
    renamed = [
        [content.replace(name.encode(), b"NAME") for _, _, content in of_foreign[at * 8 : at * 8 + 8]]
        for at, name in enumerate(names)
    ]
    assert renamed[0] == renamed[1] == renamed[2] == renamed[3], "hidden and missing are alike"


def test_ids_of_others_are_404(caller: Caller):  # C02
    place = make("others", writers=("strangers",))
    document = add(place, "A text.", is_loaded=False)
    for path in ("", "/documents", f"/documents/{document.pk}", f"/documents/{document.pk}/content"):
        hidden = caller.get(f"{MANAGED}/{place.pk}{path}")
        missing = caller.get(f"{MANAGED}/179999999900000000{path}")
        assert hidden.status_code == 404 and hidden.content == missing.content


def test_hidden_and_missing_run_the_same_queries(db: Any):  # C52
    make("others", writers=("strangers",))
    make("mine", writers=("crew",))
    caller = by_key(make_user("dora", "crew"))

    def statements(name: str) -> list[list[str]]:
        results = []
        for call in foreign_calls(caller, name):
            with CaptureQueriesContext(connection) as queries:
                assert call().status_code == 404
            results.append([query["sql"].replace(name, "NAME") for query in queries if '"document' in query["sql"]])
        return results

    of_hidden = statements("others")
    assert of_hidden == statements("nobody") and all(of_hidden)


def test_comparison_detects_a_difference(caller: Caller):
    """It would be worth nothing if it found everything alike."""

    def leak() -> None:
        add(Collection.objects.get(name="mine"), "Toner of mine.", doc_id="leak")

    requests = [sent(caller, "GET", LIST), sent(caller, "GET", RELEVANT, collection_names="mine", query="toner")]
    with_leak, without = in_world(leak, requests), in_world(nothing, requests)
    assert with_leak[0] != without[0] and with_leak[1] != without[1]


def test_every_endpoint_is_compared():
    assert {LIST, RELEVANT, BY_TAG, NAMES, LOAD_TEXT, LOAD_FILE, DELETE, DELETE_DOCUMENT} == set(EIGHT)
