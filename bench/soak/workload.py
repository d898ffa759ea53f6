"""The requests of one caller, with known results: no other caller changes its records and documents."""

import random
import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.soak.caller import Caller, Response

TASKS, INDICATIONS, COLLECTION = "/rest/v1/table/task", "/rest/v1/table/sys_indication", "soak"
FIELDS = ("short_description", "description", "priority")
WORDS = ("printer", "tray", "lamp", "cable", "switch", "router", "phone", "badge", "door", "screen", "laptop", "ladder")
MAX_RECORDS, MAX_DOCUMENTS = 40, 12
MEAN_PAUSE_S = 0.4


@dataclass
class Workload:
    name: str
    caller: Caller
    sign_in: Callable[[], None]
    records: dict[str, dict[str, str]] = field(default_factory=dict)
    """The acknowledged values of each record."""
    deleted_ids: set[str] = field(default_factory=set)
    deferred_names: dict[str, str] = field(default_factory=dict)
    """The names of deferred records, which the worker creates."""
    documents: dict[str, str] = field(default_factory=dict)
    load_count: int = 0
    acknowledged_write_count: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.name)
        self.weighted_actions = (
            (25, self.list_records), (25, self.read_record), (12, self.create_record), (15, self.change_record),
            (4, self.delete_record), (4, self.defer_record), (5, self.load_document), (1, self.remove_document),
            (12, self.check_search), (1, self.sign_in),
        )  # fmt: skip

    def run_until(self, stop_event: threading.Event) -> None:
        actions = [action for _, action in self.weighted_actions]
        weights = [weight for weight, _ in self.weighted_actions]
        while not stop_event.wait(self.rng.expovariate(1 / MEAN_PAUSE_S)):
            self.rng.choices(actions, weights)[0]()

    def sentence(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=12))

    # Records

    def create_record(self) -> None:
        if len(self.records) >= MAX_RECORDS:
            return self.delete_record()
        payload = {
            "short_description": f"{self.name} {self.sentence()}",
            "description": self.sentence(),
            "priority": self.rng.choice("1234"),
        }
        response = self.caller.call("create", "POST", TASKS, payload, headers=self.idempotency_headers())
        if self.check_status(response, 201, "a created record"):
            self.records[response.body["data"][0]["sys_id"]] = payload
            self.acknowledged_write_count += 1

    def defer_record(self) -> None:
        payload = {"name": f"{self.name} {self.sentence()}"}
        response = self.caller.call("defer", "POST", INDICATIONS, payload, headers=self.idempotency_headers())
        if self.check_status(response, 201, "a deferred record"):
            self.deferred_names[response.body["data"][0]["sys_id"]] = payload["name"]
            self.acknowledged_write_count += 1

    def idempotency_headers(self) -> dict[str, str]:
        """A new idempotency key, so that retries do not repeat the write."""
        return {"Idempotency-Key": str(uuid.UUID(int=self.rng.getrandbits(128)))}

    def change_record(self) -> None:
        if sys_id := self.choose(self.records):
            payload = {"description": self.sentence(), "priority": self.rng.choice("1234")}
            response = self.caller.call("change", "PATCH", f"{TASKS}/{sys_id}", payload)
            if self.check_status(response, 200, "a changed record"):
                self.records[sys_id] |= payload
                self.acknowledged_write_count += 1

    def delete_record(self) -> None:
        if sys_id := self.choose(self.records):
            response = self.caller.call("delete", "DELETE", f"{TASKS}/{sys_id}", headers=self.idempotency_headers())
            if self.check_status(response, 200, "a deleted record"):
                del self.records[sys_id]
                self.deleted_ids.add(sys_id)
                self.acknowledged_write_count += 1

    def read_record(self) -> None:
        if sys_id := self.choose(self.records):
            self.check_record(sys_id)

    def check_record(self, sys_id: str) -> None:
        response = self.caller.call("read", "GET", f"{TASKS}/{sys_id}", query={"sysparm_fields": ",".join(FIELDS)})
        if self.check_status(response, 200, "an existing record"):
            self.check_equal(response.body["data"][0], self.records[sys_id], f"record {sys_id}")

    def list_records(self) -> None:
        query = {
            "sysparm_query": f"short_descriptionSTARTSWITH{self.name} ^ORDERBYsys_id", "sysparm_fields": "sys_id",
            "sysparm_limit": 100,
        }  # fmt: skip
        response = self.caller.call("list", "GET", TASKS, query=query)
        if self.check_status(response, 200, "a list"):
            self.check_equal([row["sys_id"] for row in response.body["data"]], sorted(self.records), "the list")

    # Documents

    def load_document(self) -> None:
        if len(self.documents) >= MAX_DOCUMENTS:
            doc_id = self.choose(self.documents)
        else:
            doc_id = f"{self.name}-{self.load_count}"
            self.load_count += 1
        text = f"{self.unique_word(doc_id)} {self.rng.getrandbits(40)} " + ". ".join(self.sentence() for _ in range(60))
        query = {"collection_name": COLLECTION, "doc_id": doc_id, "on_duplicate": "replace"}
        payload = {"text": text, "metadata": {"of": self.name}, "wait": self.rng.random() < 0.5}
        response = self.caller.call("load", "POST", "/load_text_to_collection", payload, query=query)
        if response.status in (200, 201, 202):
            self.documents[doc_id] = text
            self.acknowledged_write_count += 1
        else:
            self.check_status(response, 201, f"a load of {doc_id}")

    def remove_document(self) -> None:
        if doc_id := self.choose(self.documents):
            query = {"collection_name": COLLECTION, "id_value": doc_id}
            response = self.caller.call("remove", "DELETE", "/delete_document_from_collection", query=query)
            # An earlier try may have removed it although its response was lost.
            is_gone = response.status == 404 and response.try_count > 1
            if is_gone or self.check_status(response, 200, "a removed document"):
                del self.documents[doc_id]
                self.acknowledged_write_count += 1

    def check_search(self) -> None:
        """Checks that a search finds only passages of the caller's documents. `check_all` checks that it finds all."""
        response = self.search(f"{self.rng.choice(WORDS)} {self.rng.choice(WORDS)}")
        for row in response.body if self.check_status(response, 200, "a search") else ():
            if row["doc_id"] not in self.documents or row["metadata"] != {"of": self.name}:
                self.caller.tally.add_error(f"{self.name}: a search found {row['doc_id']}")

    def search(self, query: str) -> Response:
        parameters = {"collection_names": COLLECTION, "query": query, "metadata": f"of={self.name}", "k": 5}
        return self.caller.call("search", "GET", "/get_relevant_documents", query=parameters)

    @staticmethod
    def unique_word(doc_id: str) -> str:
        """A word that occurs only in this document."""
        return "zq" + doc_id.replace("-", "x")

    # Final checks

    def check_all(self) -> None:
        """Checks, after the last request, that exactly the acknowledged changes were made."""
        self.list_records()
        for sys_id in self.records:
            self.check_record(sys_id)
        for sys_id in self.deleted_ids:
            self.check_status(self.caller.call("read", "GET", f"{TASKS}/{sys_id}"), 404, f"deleted record {sys_id}")
        for sys_id, name in self.deferred_names.items():
            response = self.caller.call("read", "GET", f"{INDICATIONS}/{sys_id}", query={"sysparm_fields": "name"})
            if self.check_status(response, 200, f"deferred record {sys_id}"):
                self.check_equal(response.body["data"][0], {"name": name}, f"deferred record {sys_id}")
        parameters = {"collection_name": COLLECTION, "tag_info": f"of={self.name}", "limit": 200}
        response = self.caller.call("content", "GET", "/get_content_by_tag", query=parameters)
        if self.check_status(response, 200, "all documents"):
            stored_texts = {row["doc_id"]: row["page_content"] for row in response.body}
            self.check_equal(stored_texts, self.documents, "the documents")
        for doc_id in self.documents:
            response = self.search(self.unique_word(doc_id))
            if self.check_status(response, 200, "a search"):
                self.check_equal([row["doc_id"] for row in response.body][:1], [doc_id], f"the search for {doc_id}")

    def choose(self, items: dict[str, Any]) -> str:
        return self.rng.choice(list(items)) if items else ""

    def check_status(self, response: Response, status: int, description: str) -> bool:
        if response.status == status:
            return True
        self.caller.tally.add_error(f"{self.name}: {description} was answered with {response.status} {response.body}")
        return False

    def check_equal(self, actual: Any, expected: Any, description: str) -> None:
        if actual != expected:
            self.caller.tally.add_error(f"{self.name}: {description} is {actual}, not {expected}")
