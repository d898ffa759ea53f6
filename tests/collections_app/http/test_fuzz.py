"""Requests made from the description of these endpoints, valid and not: none of them is a fault of the service."""

from base64 import b64encode
from functools import partial
from typing import Any

import pytest
import requests
import schemathesis
from django.test import Client
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from collections_app.models import Collection, Document
from tests.collections_app.http.calls import BY_TAG, EIGHT, MANAGED, RELEVANT, Caller
from tests.collections_app.library import add, make
from tests.conftest import PASSWORD
from tests.fuzzing import count_answers, sent

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(manager: Caller) -> Collection:
    found = make("manuals")
    add(found, doc_id="one", metadata={"type": "manual"})
    return found


def sent_somewhere(client: Client, known: dict[str, str], case: Any) -> Any:
    """With ids that lead somewhere: made-up ones would never get past the door."""
    if not case.path.startswith(MANAGED) or "{" not in case.path:
        return sent(client, case)
    _, question, query = str(
        requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare().path_url
    ).partition("?")
    return sent(client, case, case.path.format(**known) + question + query)


def send(login: str, place: Collection, examples: int) -> dict[int, int]:
    """So many requests of each operation; how often each status was answered."""
    pair = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    client = Client(headers={"Authorization": f"Basic {pair}"} if login else {})
    schema = schemathesis.openapi.from_dict(client.get("/api/schema").json())
    known = {"sys_id": place.pk, "document": Document.objects.filter(collection=place)[0].pk}
    found: dict[int, int] = {}

    made: list[Any] = list(schema.get_all_operations())
    operations = [each.ok() for each in made]
    for described in (each for each in operations if each.path in EIGHT or each.path.startswith(MANAGED)):
        count_answers(described, examples, partial(sent_somewhere, client, known), found)
    return found


@pytest.mark.parametrize("login", ["", "carl"])
def test_no_request_is_a_fault_of_the_service(login: str, place: Collection):
    found = send(login, place, examples=6 if login else 1)

    # It got somewhere: not everything was refused at the door.
    assert found.get(200 if login else 401, 0) > 0 and (found.get(400, 0) > 0 or not login)


@pytest.mark.nightly
def test_neither_is_any_of_many(place: Collection):
    send("carl", place, examples=150)


WORDS = some.text(max_size=40) | some.sampled_from(["type=manual", "priority>1", "^", "=", "%", "'", "\\", "typeINa,b"])


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(query=WORDS, filter=WORDS, mode=some.sampled_from(["hybrid", "text", "vector"]))
def test_any_words_are_searched_for_or_refused(manager: Caller, place: Collection, query: str, filter: str, mode: str):
    asked = {"collection_names": ["manuals"], "query": query, "metadata": filter, "mode": mode}

    assert manager.post(RELEVANT, asked).status_code in (200, 400)
    assert manager.post(BY_TAG, {"collection_name": "manuals", "tag_info": filter}).status_code in (200, 400)
