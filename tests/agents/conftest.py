"""The demo data, and agents of its users."""

from typing import Any

import pytest

from accounts import demo
from accounts.models import User
from collections_app.models import Collection
from tableapi.setup import demo_records
from tests.agents.agent_calls import Agent
from tests.collections_app.library import add_document, make_library_collection

GUIDE = """# Printers

Replace the toner when the lamp is red. Spare toner is in room 12.

# Mail

A full mailbox refuses mail. Empty the folder Deleted Items, then wait ten minutes.

# Guests

Ask reception for a guest code of the wireless network. A code is valid for one day.
"""


@pytest.fixture
def demo_data(db: Any) -> None:
    demo.create_demo_users(lambda: "a demo password")
    demo_records.create_demo_records()


@pytest.fixture
def desk(demo_data: None) -> User:
    return User.objects.get(login="demo.agent")


@pytest.fixture
def requester(demo_data: None) -> User:
    return User.objects.get(login="demo.user")


@pytest.fixture
def guide(desk: User) -> Collection:
    """Readable by the desk."""
    collection = make_library_collection("Guides", readers=("itil",))
    Collection.objects.filter(pk=collection.pk).update(chunk_size=100, chunk_overlap=20)
    add_document(collection.refreshed(), GUIDE, filename="guide.md", doc_id="guide", metadata={"type": "guide"})
    return collection


@pytest.fixture
def agent(desk: User) -> Agent:
    return Agent(desk, mcp_writes=True)
