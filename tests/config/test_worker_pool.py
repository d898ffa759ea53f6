"""Worker children that loaded libraries end when they are idle; no task is lost or runs twice."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import redis
from celery import Celery
from django.conf import settings

from config.env import ROOT
from tests.config.stack import eventually


class Worker:
    """A worker with one child."""

    def __init__(self, file: Path) -> None:
        file.touch()
        self.file = file
        self.queue = f"growing-{uuid4()}"
        self.client = Celery(broker=settings.CELERY_BROKER_URL)
        self.broker = redis.Redis.from_url(settings.REDIS_URL)
        options = ["--app", "tests.config.growing_worker", "worker", "--loglevel", "ERROR"]
        variables = {
            "GROWING_FILE": str(file),
            "GROWING_QUEUE": self.queue,
            "GROWING_BROKER": settings.CELERY_BROKER_URL,
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "celery", *options, "--concurrency", "1", "--without-gossip", "--without-mingle"],
            cwd=ROOT,
            env={**os.environ, **variables, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONWARNINGS": "ignore"},
        )

    def send(self, name: str, *, library: str = "json") -> None:
        task = "tests.config.growing_worker.load_and_record"
        self.client.send_task(task, (name, library), queue=self.queue, ignore_result=True)

    def wait_for(self, word: str) -> int:
        """Waits for the word, and returns the id of the first process that wrote it."""
        return eventually(lambda: next((pid for written_word, pid in self.lines() if written_word == word), None))

    def lines(self) -> list[tuple[str, int]]:
        return [(word, int(pid)) for word, pid in map(str.split, self.file.read_text().splitlines())]

    def allow_children_to_end(self) -> None:
        self.file.with_suffix(".end").touch()


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path / "lines")
    yield worker
    worker.allow_children_to_end()
    worker.process.terminate()
    worker.process.wait(60)
    worker.client.close()
    worker.broker.close()


def test_child_that_loaded_a_library_ends_when_it_is_idle(worker: Worker):
    worker.allow_children_to_end()
    worker.send("small")
    worker.send("large", library="numpy")

    assert worker.wait_for("ends") == worker.wait_for("large") == worker.wait_for("small")
    worker.send("next")
    assert worker.wait_for("next") != worker.wait_for("large")


def test_task_sent_to_a_child_that_is_ending_runs_once(worker: Worker):
    worker.send("large", library="numpy")
    ending_pid = worker.wait_for("ends")

    worker.send("late")
    eventually(lambda: worker.broker.llen(worker.queue) == 0)  # the parent has received the task and has no other child
    worker.allow_children_to_end()
    assert worker.wait_for("late") != ending_pid
    worker.send("last")
    worker.wait_for("last")
    assert [word for word, _ in worker.lines()].count("late") == 1


def test_short_tasks_do_not_keep_a_child_and_run_once(worker: Worker):
    """Tasks are sent at shorter intervals than the idle timeout of a child."""
    worker.allow_children_to_end()
    worker.send("large", library="numpy")
    worker.wait_for("large")
    sent_names: list[str] = []

    def send_task_and_check_for_end() -> bool:
        sent_names.append(f"short-{len(sent_names)}")
        worker.send(sent_names[-1])
        return "ends" in [word for word, _ in worker.lines()]

    eventually(send_task_and_check_for_end)
    worker.wait_for(sent_names[-1])
    assert sorted(word for word, _ in worker.lines() if word in sent_names) == sorted(sent_names)
