"""Follows the change feed of a table during a soak. It must return each version of a record once, in order."""

import threading
from dataclasses import dataclass, field
from typing import Any

import psycopg

from bench.soak.caller import Caller

FEED = "/rest/v1/changes/task"
PAUSE_S = 0.2
PAGE_SIZE = 50


@dataclass
class FeedReader:
    caller: Caller
    versions: dict[str, int] = field(default_factory=dict)
    """The version of each record that the feed returned last."""
    removed_ids: set[str] = field(default_factory=set)
    cursor: str = ""

    def run_until(self, stop_event: threading.Event) -> None:
        while not stop_event.wait(PAUSE_S):
            self.read_page()

    def read_page(self) -> int:
        query = {"sysparm_fields": "sys_id,sys_version", "sysparm_limit": PAGE_SIZE}
        if self.cursor:
            query["since"] = self.cursor
        response = self.caller.call("feed", "GET", FEED, query=query)
        if response.status != 200:
            self.caller.tally.add_error(f"the feed was answered with {response.status} {response.body}")
            return 0
        for entry in response.body["data"]:
            self.record_entry(entry)
        self.cursor = response.body["cursor"]
        return len(response.body["data"])

    def record_entry(self, entry: dict[str, Any]) -> None:
        sys_id = entry["sys_id"]
        if sys_id in self.removed_ids:
            self.caller.tally.add_error(f"the feed returned {entry} after its removal")
        elif "removed" in entry:
            self.removed_ids.add(sys_id)
            self.versions.pop(sys_id, None)
        elif entry["sys_version"] <= self.versions.get(sys_id, -1):
            self.caller.tally.add_error(f"the feed returned {entry} after version {self.versions[sys_id]}")
        else:
            self.versions[sys_id] = entry["sys_version"]

    def check_all(self, connection: psycopg.Connection) -> None:
        """Checks, after the last write, that nothing was missed."""
        while self.read_page():
            pass
        # Tasks that existed before the log are not in it.
        logged_ids = "SELECT record_id FROM sys_change"
        query = f"SELECT sys_id, sys_version FROM records.task WHERE sys_id IN ({logged_ids})"
        stored_versions: dict[str, int] = dict(connection.execute(query).fetchall())
        if stored_versions != self.versions:
            missed = {key: version for key, version in stored_versions.items() if self.versions.get(key) != version}
            self.caller.tally.add_error(f"the feed missed {missed or self.versions.keys() - stored_versions.keys()}")
