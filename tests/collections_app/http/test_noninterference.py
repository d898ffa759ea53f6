"""The content of other collections does not change a single byte of a caller's responses.

The first world has no collections of others. The second adds some with the same words, files and names; the third has
others with the same names, and a deleted one. Ids and times are replaced before the comparison.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collections_app.documents import deletion
from collections_app.evaluation import questions, runs
from collections_app.models import Collection
from tests.collections_app.http.calls import (
    API_PATH,
    BY_TAG_PATH,
    COLLECTION_LIST_PATH,
    DELETE_COLLECTION_PATH,
    DELETE_DOCUMENT_PATH,
    DOCUMENT_NAMES_PATH,
    ENDPOINT_PATHS,
    LOAD_FILE_PATH,
    LOAD_TEXT_PATH,
    SEARCH_PATH,
    KeyCaller,
    make_key_caller,
)
from tests.collections_app.library import add_document, make_library_collection
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
OWN_TEXTS = ("The toner is red.", "Paper jams in tray two. " * 60, "A full mailbox refuses mail.", "Toner toner paper.")
FOREIGN_TEXT = "Secret of others: the toner is gold."
GENERATED_VALUES = re.compile(rb"\d{18}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
Action = Callable[[], Any]


def add_no_foreign_data() -> None:
    """A world without data of other users."""


def add_much_foreign_data() -> None:
    collection = make_library_collection("others", readers=("strangers",), writers=("strangers",))
    for number, text in enumerate((*OWN_TEXTS, FOREIGN_TEXT, "Toner and paper, toner and mail. " * 40)):
        add_document(collection, text, doc_id=f"own-{number}", metadata={"type": "manual", "priority": number})
    questions.store_questions(collection, [{"query": "toner", "doc_ids": ["own-3", "secret"]}], user_id="")
    add_document(
        make_library_collection("more of others", writers=("strangers",)),
        OWN_TEXTS[0],
        doc_id="secret",
        is_loaded=False,
    )


def add_other_foreign_data() -> None:
    collection = make_library_collection("others", writers=("strangers",))
    add_document(collection, "Nothing alike.", doc_id="secret", metadata={"type": "secret"})
    deleted_collection = make_library_collection("more of others", writers=("strangers",))
    add_document(deleted_collection, FOREIGN_TEXT)
    deletion.delete_collection(deleted_collection)
    make_library_collection("empty", writers=("strangers",))


FOREIGN_WORLDS: dict[str, Callable[[], None]] = {
    "nothing": add_no_foreign_data,
    "much": add_much_foreign_data,
    "other things": add_other_foreign_data,
}


@pytest.fixture
def caller(db: Any) -> KeyCaller:
    """A caller who can read and write only the collection `mine`."""
    collection = make_library_collection("mine", writers=("crew",))
    for number, text in enumerate(OWN_TEXTS):
        add_document(collection, text, doc_id=f"own-{number}", metadata={"type": "manual", "priority": number})
    return make_key_caller(make_user("dora", "crew"))


def run_and_roll_back(action: Action) -> Any:
    with transaction.atomic():
        result = action()
        transaction.set_rollback(True)
    return result


def comparable_parts(response: Any) -> tuple[int, dict[str, str], bytes]:
    headers = {name: value for name, value in response.headers.items() if name != "X-Request-ID"}
    content = GENERATED_VALUES.sub(b"GENERATED", response.content)
    headers["Content-Length"] = str(len(content))
    return response.status_code, headers, content


def send_request(request: Action) -> Any:
    return comparable_parts(request())


def responses_in_world(world: Callable[[], None], requests: Sequence[Action]) -> list[Any]:
    """Returns the responses in a world; rolls back the world and the changes of the requests."""

    def create_world_and_send() -> list[Any]:
        world()
        return [run_and_roll_back(partial(send_request, request)) for request in requests]

    responses: list[Any] = run_and_roll_back(create_world_and_send)
    return responses


def check_equal_in_all_worlds(requests: Sequence[Action]) -> list[Any]:
    responses_by_world = {name: responses_in_world(world, requests) for name, world in FOREIGN_WORLDS.items()}
    for number, expected_response in enumerate(responses_by_world["nothing"]):
        assert responses_by_world["much"][number] == expected_response, number
        assert responses_by_world["other things"][number] == expected_response, number
    return responses_by_world["nothing"]


def make_request(caller: KeyCaller, method: str, path: str, body: Any = None, **query: Any) -> Action:
    return lambda: caller.send(method, path, body, **query)


QUERY_WORDS_STRATEGY = st.lists(
    st.sampled_from(["toner", "paper", "mail", "red", "gold", "secret", "tray"]), min_size=1, max_size=4
)
FILTERS = ["", "type=manual", "priority>1", "type=secret", "priority=2^ORtype=manual", "typeISEMPTY"]
SEARCH_STRATEGY = st.fixed_dictionaries(
    {
        "collection_names": st.just(["mine"]),
        "query": QUERY_WORDS_STRATEGY.map(" ".join),
        "metadata": st.sampled_from(FILTERS),
        "mode": st.sampled_from(["hybrid", "text", "vector"]),
        "k": st.integers(1, 8),
    }
)


@pytest.mark.nightly
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(searches=st.lists(SEARCH_STRATEGY, min_size=15, max_size=20))
def test_many_searches_have_equal_scores_in_all_worlds(caller: KeyCaller, searches: list[Any]):  # C04
    responses = check_equal_in_all_worlds([make_request(caller, "POST", SEARCH_PATH, search) for search in searches])
    assert {status for status, _, _ in responses} == {200}


def foreign_collection_requests(caller: KeyCaller, name: str) -> list[Action]:
    return [
        make_request(caller, "GET", SEARCH_PATH, collection_names=name, query="toner"),
        make_request(caller, "GET", SEARCH_PATH, collection_names=["mine", name, name], query="toner"),
        make_request(caller, "GET", BY_TAG_PATH, collection_name=name, tag_info="type=manual"),
        make_request(caller, "GET", DOCUMENT_NAMES_PATH, collection_name=name),
        make_request(caller, "POST", LOAD_TEXT_PATH, {"text": OWN_TEXTS[0]}, collection_name=name),
        lambda: caller.upload(OWN_TEXTS[0].encode(), "a.txt", collection_name=name),
        make_request(caller, "DELETE", DELETE_COLLECTION_PATH, collection_name=name),
        make_request(caller, "DELETE", DELETE_DOCUMENT_PATH, collection_name=name, id_value="own-1"),
    ]


def own_requests(caller: KeyCaller) -> list[Action]:
    duplicate_body = {"text": OWN_TEXTS[0], "metadata": {"type": "manual", "priority": 0}}
    return [
        make_request(caller, "GET", COLLECTION_LIST_PATH),
        make_request(caller, "GET", API_PATH),
        make_request(caller, "GET", DOCUMENT_NAMES_PATH, collection_name="mine"),
        make_request(caller, "GET", BY_TAG_PATH, collection_name="mine"),
        # Documents of others are created in each world, own documents are not.
        make_request(caller, "POST", LOAD_TEXT_PATH, {"text": FOREIGN_TEXT}, collection_name="mine"),
        make_request(caller, "POST", LOAD_TEXT_PATH, duplicate_body, collection_name="mine"),
        make_request(caller, "POST", LOAD_TEXT_PATH, {"text": "New.", "doc_id": "secret"}, collection_name="mine"),
        make_request(caller, "DELETE", DELETE_DOCUMENT_PATH, collection_name="mine", id_value="secret"),
        make_request(caller, "DELETE", DELETE_DOCUMENT_PATH, collection_name="mine", id_value="never there"),
        make_request(caller, "DELETE", DELETE_DOCUMENT_PATH, collection_name="mine", id_value="own-1"),
    ]


def own_searches(caller: KeyCaller) -> list[Action]:
    vector_store = f"/v1/vector_stores/{Collection.objects.get(name='mine').pk}/search"
    searches = [
        make_request(caller, "GET", SEARCH_PATH, collection_names="mine", query=query, metadata=filter, mode=mode, k=k)
        for query, k in (("toner", 5), ("gold secret toner", 2), ("paper tray mail red", 3))
        for filter in FILTERS[:3]
        for mode in ("hybrid", "text", "vector")
    ]
    return [*searches, make_request(caller, "POST", vector_store, {"query": "gold secret toner"})]


def test_data_of_others_changes_no_response(caller: KeyCaller):  # C02, C03, C04, C06, C12, C51
    names = ("others", "more of others", "empty", "never there")
    foreign_requests = [request for name in names for request in foreign_collection_requests(caller, name)]
    responses = check_equal_in_all_worlds([*own_requests(caller), *own_searches(caller), *foreign_requests])

    own_responses, foreign_responses = responses[:-32], responses[-32:]
    assert [status for status, _, _ in own_responses] == [200, 200, 200, 200, 201, 200, 201, 404, 404, 200] + 28 * [200]
    assert own_responses[0][2].count(b"collection_name") == own_responses[1][2].count(b"collection_name") == 1
    assert {status for status, _, _ in foreign_responses} == {404}
    contents_by_name = [
        [content.replace(name.encode(), b"NAME") for _, _, content in foreign_responses[index * 8 : index * 8 + 8]]
        for index, name in enumerate(names)
    ]
    assert contents_by_name[0] == contents_by_name[1] == contents_by_name[2] == contents_by_name[3], (
        "hidden and missing collections get equal responses"
    )


def test_ids_of_others_are_404(caller: KeyCaller):  # C02
    collection = make_library_collection("others", writers=("strangers",))
    document = add_document(collection, "A text.", is_loaded=False)
    for path in (
        "",
        "/documents",
        f"/documents/{document.pk}",
        f"/documents/{document.pk}/content",
        "/evaluation/questions",
        "/evaluation/runs",
    ):
        hidden_response = caller.get(f"{API_PATH}/{collection.pk}{path}")
        missing_response = caller.get(f"{API_PATH}/179999999900000000{path}")
        assert hidden_response.status_code == 404 and hidden_response.content == missing_response.content


def test_evaluation_is_the_same_in_all_worlds(caller: KeyCaller):  # C04
    collection = Collection.objects.get(name="mine")
    path = f"{API_PATH}/{collection.pk}/evaluation"
    entries = [
        {"query": query, "doc_ids": [f"own-{number}", "secret"]} for number, query in enumerate(["toner", "tray"])
    ]
    questions.store_questions(collection, entries, user_id="")

    def run() -> Any:
        sys_id = caller.post(f"{path}/runs").json()["sys_id"]
        assert not runs.continue_oldest_run(time.monotonic() + 30)
        return caller.get(f"{path}/runs/{sys_id}")

    add_question = make_request(caller, "POST", f"{path}/questions", [{"query": "toner", "doc_ids": ["own-3"]}])
    responses = check_equal_in_all_worlds([run, add_question, make_request(caller, "GET", f"{path}/questions")])
    assert {status for status, _, _ in responses} == {200} and b'"state":"done"' in responses[0][2]


def test_hidden_and_missing_collections_cause_the_same_queries(db: Any):  # C52
    make_library_collection("others", writers=("strangers",))
    make_library_collection("mine", writers=("crew",))
    caller = make_key_caller(make_user("dora", "crew"))

    def record_statements(name: str) -> list[list[str]]:
        statements = []
        for send in foreign_collection_requests(caller, name):
            with CaptureQueriesContext(connection) as queries:
                assert send().status_code == 404
            statements.append([query["sql"].replace(name, "NAME") for query in queries if '"document' in query["sql"]])
        return statements

    hidden_statements = record_statements("others")
    assert hidden_statements == record_statements("nobody") and all(hidden_statements)


def test_comparison_detects_a_difference(caller: KeyCaller):
    """Proves that the comparison can find a difference."""

    def leak_into_own_collection() -> None:
        add_document(Collection.objects.get(name="mine"), "Toner of mine.", doc_id="leak")

    requests = [
        make_request(caller, "GET", COLLECTION_LIST_PATH),
        make_request(caller, "GET", SEARCH_PATH, collection_names="mine", query="toner"),
    ]
    leaking_responses, expected_responses = (
        responses_in_world(leak_into_own_collection, requests),
        responses_in_world(add_no_foreign_data, requests),
    )
    assert leaking_responses[0] != expected_responses[0] and leaking_responses[1] != expected_responses[1]


def test_every_endpoint_is_compared():
    assert {
        COLLECTION_LIST_PATH,
        SEARCH_PATH,
        BY_TAG_PATH,
        DOCUMENT_NAMES_PATH,
        LOAD_TEXT_PATH,
        LOAD_FILE_PATH,
        DELETE_COLLECTION_PATH,
        DELETE_DOCUMENT_PATH,
    } == set(ENDPOINT_PATHS)
