"""The tools for documents: passages with links, and the text around them."""

import pytest
from django.test import Client

from accounts.models import User
from collections_app.models import Collection
from tests.agents.agent_calls import Agent, error_codes
from tests.agents.conftest import GUIDE
from tests.collections_app.library import add_document, make_library_collection

pytestmark = pytest.mark.django_db


def test_passage_is_found_and_its_link_opens_it(agent: Agent, desk: User, guide: Collection):
    best = agent.search_documents(query="where is spare toner", limit=1)["passages"][0]

    assert "room 12" in best["text"] and (best["document"], best["collection"]) == ("guide.md", "Guides")
    assert best["headings"] == ["Printers"] and best["link"].startswith("http://testserver/collections/")
    client = Client()
    client.force_login(desk)
    page = client.get(best["link"].partition("#")[0].removeprefix("http://testserver"))
    assert page.status_code == 200 and "room 12" in page.content.decode()


def test_search_can_be_limited(agent: Agent, guide: Collection):
    add_document(make_library_collection("Other", readers=("itil",)), "Toner is red.", doc_id="other")

    def documents(**arguments: object) -> set[str]:
        passages = agent.search_documents(query="toner", limit=20, **arguments)["passages"]
        return {passage["collection"] for passage in passages}

    assert documents() == {"Guides", "Other"}
    assert documents(collections=["Guides"]) == documents(filter="type=guide") == {"Guides"}
    assert error_codes(agent.search_documents(query="toner", filter="type")) == ["invalid_query"]
    assert error_codes(agent.search_documents(query=" ")) == ["invalid_parameter"]
    assert error_codes(agent.search_documents(query="toner", collections=["nothing"])) == ["not_found"]


def test_text_around_a_passage_is_continuous(agent: Agent, guide: Collection):
    passage = agent.search_documents(query="empty the folder", limit=1)["passages"][0]["passage"]

    texts = [agent.read_around(passage=passage, before=number, after=number)["text"] for number in range(3)]
    assert texts[0] in texts[1] and texts[1] in texts[2] and texts[2] in GUIDE
    assert len(texts[0]) < len(texts[1])
    following = agent.read_around(passage=passage, before=0, after=0)["next_passage"]
    assert agent.read_around(passage=following, before=0, after=0)["text"] in GUIDE
    last = agent.read_around(passage=passage, after=5)
    assert "next_passage" not in last and last["text"].rstrip().endswith("one day.")


def test_unreadable_collections_do_not_exist(agent: Agent, requester: User, guide: Collection):
    passage = agent.search_documents(query="toner", limit=1)["passages"][0]["passage"]
    other = Agent(requester)

    assert other.search_documents(query="toner") == {"passages": []}
    hidden = other.search_documents(query="toner", collections=["Guides"])
    missing = other.search_documents(query="toner", collections=["Nobody"])
    assert error_codes(hidden) == error_codes(missing) == ["not_found"]
    made_up = passage.replace(passage.partition("-")[0], "179999999900000000")
    assert other.read_around(passage=passage) == other.read_around(passage=made_up)


def test_passage_of_another_version_is_refused(agent: Agent, guide: Collection):
    passage = agent.search_documents(query="toner", limit=1)["passages"][0]["passage"]
    beginning, *_ = passage.rpartition("-")

    assert error_codes(agent.read_around(passage=f"{beginning}-99")) == ["not_found"]
    add_document(guide.refreshed(), GUIDE + "More.", filename="guide.md", doc_id="guide")
    assert error_codes(agent.read_around(passage=passage)) == ["conflict"]
    for invalid in ("", "a", "a-b-c-d", f"{passage}0" * 30, "a-b-1-٣"):
        assert error_codes(agent.read_around(passage=invalid))[0] in ("invalid_parameter", "not_found")
