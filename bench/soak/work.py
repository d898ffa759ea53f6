"""The work and knowledge of one caller: only this caller changes its records and documents."""

import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.soak.caller import Answer, Caller

TABLE, DEFERRED_TABLE, COLLECTION = "/rest/v1/table/task", "/rest/v1/table/sys_indication", "soak"
FIELDS = ("short_description", "description", "priority")
WORDS = ("printer", "tray", "lamp", "cable", "switch", "router", "phone", "badge", "door", "screen", "laptop", "ladder")
MAX_RECORDS, MAX_DOCUMENTS = 40, 12
THINKS_S = 0.4


@dataclass
class Work:
    name: str
    caller: Caller
    sign_in: Callable[[], None]
    records: dict[str, dict[str, str]] = field(default_factory=dict)
    """What was acknowledged of each."""
    deleted: set[str] = field(default_factory=set)
    deferred: dict[str, str] = field(default_factory=dict)
    """The names of the records that the worker creates."""
    documents: dict[str, str] = field(default_factory=dict)
    loaded: int = 0
    acknowledged: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(self.name)
        self.does = (
            (25, self.lists), (25, self.reads), (12, self.creates), (15, self.changes), (4, self.deletes),
            (4, self.defers), (5, self.loads), (1, self.removes), (12, self.searches), (1, self.sign_in),
        )  # fmt: skip

    def go_on_until(self, over: threading.Event) -> None:
        actions = [action for _, action in self.does]
        weights = [weight for weight, _ in self.does]
        while not over.wait(self.chance.expovariate(1 / THINKS_S)):
            self.chance.choices(actions, weights)[0]()

    def sentence(self) -> str:
        return " ".join(self.chance.choices(WORDS, k=12))

    # Records

    def creates(self) -> None:
        if len(self.records) >= MAX_RECORDS:
            return self.deletes()
        payload = {
            "short_description": f"{self.name} {self.sentence()}",
            "description": self.sentence(),
            "priority": self.chance.choice("1234"),
        }
        answer = self.caller.call("create", "POST", TABLE, payload, headers=self.once())
        if self.expects(answer, 201, "a created record"):
            self.records[answer.body["data"][0]["sys_id"]] = payload
            self.acknowledged += 1

    def defers(self) -> None:
        payload = {"name": f"{self.name} {self.sentence()}"}
        answer = self.caller.call("defer", "POST", DEFERRED_TABLE, payload, headers=self.once())
        if self.expects(answer, 201, "a deferred record"):
            self.deferred[answer.body["data"][0]["sys_id"]] = payload["name"]
            self.acknowledged += 1

    def once(self) -> dict[str, str]:
        """For a write that is done once, however often it is sent."""
        return {"Idempotency-Key": str(uuid.UUID(int=self.chance.getrandbits(128)))}

    def changes(self) -> None:
        if sys_id := self.any_of(self.records):
            payload = {"description": self.sentence(), "priority": self.chance.choice("1234")}
            answer = self.caller.call("change", "PATCH", f"{TABLE}/{sys_id}", payload)
            if self.expects(answer, 200, "a changed record"):
                self.records[sys_id] |= payload
                self.acknowledged += 1

    def deletes(self) -> None:
        if sys_id := self.any_of(self.records):
            answer = self.caller.call("delete", "DELETE", f"{TABLE}/{sys_id}", headers=self.once())
            if self.expects(answer, 200, "a deleted record"):
                del self.records[sys_id]
                self.deleted.add(sys_id)
                self.acknowledged += 1

    def reads(self) -> None:
        if sys_id := self.any_of(self.records):
            self.checks(sys_id)

    def checks(self, sys_id: str) -> None:
        answer = self.caller.call("read", "GET", f"{TABLE}/{sys_id}", query={"sysparm_fields": ",".join(FIELDS)})
        if self.expects(answer, 200, "a record that is there"):
            self.is_same(answer.body["data"][0], self.records[sys_id], f"record {sys_id}")

    def lists(self) -> None:
        query = {
            "sysparm_query": f"short_descriptionSTARTSWITH{self.name} ^ORDERBYsys_id", "sysparm_fields": "sys_id",
            "sysparm_limit": 100,
        }  # fmt: skip
        answer = self.caller.call("list", "GET", TABLE, query=query)
        if self.expects(answer, 200, "a list"):
            self.is_same([row["sys_id"] for row in answer.body["data"]], sorted(self.records), "the list")

    # Documents

    def loads(self) -> None:
        if len(self.documents) >= MAX_DOCUMENTS:
            doc_id = self.any_of(self.documents)
        else:
            doc_id = f"{self.name}-{self.loaded}"
            self.loaded += 1
        text = f"{self.mark(doc_id)} {self.chance.getrandbits(40)} " + ". ".join(self.sentence() for _ in range(60))
        query = {"collection_name": COLLECTION, "doc_id": doc_id, "on_duplicate": "replace"}
        payload = {"text": text, "metadata": {"of": self.name}, "wait": self.chance.random() < 0.5}
        answer = self.caller.call("load", "POST", "/load_text_to_collection", payload, query=query)
        if answer.status in (200, 201, 202):
            self.documents[doc_id] = text
            self.acknowledged += 1
        else:
            self.expects(answer, 201, f"a load of {doc_id}")

    def removes(self) -> None:
        if doc_id := self.any_of(self.documents):
            query = {"collection_name": COLLECTION, "id_value": doc_id}
            answer = self.caller.call("remove", "DELETE", "/delete_document_from_collection", query=query)
            # An earlier try, whose answer was lost, may have done it.
            is_gone = answer.status == 404 and answer.tries > 1
            if is_gone or self.expects(answer, 200, "a removed document"):
                del self.documents[doc_id]
                self.acknowledged += 1

    def searches(self) -> None:
        """What is found are passages of this caller's documents; whether all are found is asked at the end."""
        answer = self.search(f"{self.chance.choice(WORDS)} {self.chance.choice(WORDS)}")
        for row in answer.body if self.expects(answer, 200, "a search") else ():
            if row["doc_id"] not in self.documents or row["metadata"] != {"of": self.name}:
                self.caller.tally.is_wrong(f"{self.name}: a search found {row['doc_id']}")

    def search(self, query: str) -> Answer:
        parameters = {"collection_names": COLLECTION, "query": query, "metadata": f"of={self.name}", "k": 5}
        return self.caller.call("search", "GET", "/get_relevant_documents", query=parameters)

    @staticmethod
    def mark(doc_id: str) -> str:
        """A word that stands in this document alone."""
        return "zq" + doc_id.replace("-", "x")

    # At the end

    def checks_all(self) -> None:
        """When nothing is under way any more: all that was acknowledged is so, and nothing else."""
        self.lists()
        for sys_id in self.records:
            self.checks(sys_id)
        for sys_id in self.deleted:
            self.expects(self.caller.call("read", "GET", f"{TABLE}/{sys_id}"), 404, f"deleted record {sys_id}")
        for sys_id, name in self.deferred.items():
            answer = self.caller.call("read", "GET", f"{DEFERRED_TABLE}/{sys_id}", query={"sysparm_fields": "name"})
            if self.expects(answer, 200, f"deferred record {sys_id}"):
                self.is_same(answer.body["data"][0], {"name": name}, f"deferred record {sys_id}")
        parameters = {"collection_name": COLLECTION, "tag_info": f"of={self.name}", "limit": 200}
        answer = self.caller.call("content", "GET", "/get_content_by_tag", query=parameters)
        if self.expects(answer, 200, "all documents"):
            stored = {row["doc_id"]: row["page_content"] for row in answer.body}
            self.is_same(stored, self.documents, "the documents")
        for doc_id in self.documents:
            answer = self.search(self.mark(doc_id))
            if self.expects(answer, 200, "a search"):
                self.is_same([row["doc_id"] for row in answer.body][:1], [doc_id], f"the search for {doc_id}")

    def any_of(self, expected: dict[str, Any]) -> str:
        return self.chance.choice(list(expected)) if expected else ""

    def expects(self, answer: Answer, status: int, what: str) -> bool:
        if answer.status == status:
            return True
        self.caller.tally.is_wrong(f"{self.name}: {what} was answered with {answer.status} {answer.body}")
        return False

    def is_same(self, actual: Any, expected: Any, what: str) -> None:
        if actual != expected:
            self.caller.tally.is_wrong(f"{self.name}: {what} is {actual}, not {expected}")
