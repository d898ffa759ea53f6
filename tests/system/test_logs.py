"""Log lines contain no secrets and cannot be forged."""

import errno
import io
import json
import logging
import logging.config
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr
from types import SimpleNamespace

import pytest
import structlog
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from config.env import ROOT
from system.monitoring import logs
from tests.config.stack import eventually

LogWriter = Callable[..., str]


def write_own_entry(*, as_json: bool, event: str, **values) -> str:
    """Logs an event of the product and returns the printed line."""
    with redirect_stderr(io.StringIO()) as stream:
        processors = [*logs.COMMON_PROCESSORS, *logs.final_processors(as_json=as_json)]
        structlog.wrap_logger(logs.StderrLogger("tests.logs"), processors=processors).info(event, **values)
    return stream.getvalue()


def write_library_entry(*, as_json: bool, event: str, **values) -> str:
    """Logs a message of a library and returns the printed line."""
    config = logs.logging_config(as_json=as_json)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    options = dict(config["formatters"]["line"])
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(**{name: value for name, value in options.items() if name != "()"})
    )
    logger = logging.getLogger("tests.logs")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    logger.info(event, extra=values)
    return stream.getvalue()


@pytest.mark.parametrize("write", [write_own_entry, write_library_entry])
@pytest.mark.parametrize("as_json", [True, False])
@settings(deadline=None)
@given(text=st.text(max_size=60))
def test_one_event_is_always_one_line(as_json: bool, text: str, write: LogWriter):  # X09
    line = write(as_json=as_json, event="happened", typed=text)

    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert "\x1b" not in line
    assert "\r" not in line


@pytest.mark.parametrize("write", [write_own_entry, write_library_entry])
def test_production_lines_are_json(write: LogWriter):
    entry = json.loads(write(as_json=True, event="happened", count=3))

    assert (entry["event"], entry["count"], entry["level"], entry["logger"]) == ("happened", 3, "info", "tests.logs")


@pytest.mark.parametrize("write", [write_own_entry, write_library_entry])
@pytest.mark.parametrize(
    "values",
    [
        {"password": "canary"},
        {"client_secret": "canary"},
        {"auth": {"access_token": "canary"}},
        {"headers": {"Authorization": "canary", "Cookie": "canary"}},
        {"note": "sent Bearer canary-canary-canary"},
        {"note": "sent Basic Y2FuYXJ5OmNhbmFyeQcanary=="},
        {"note": "key sb_canarycanarycanarycanary was used"},
    ],
)
def test_secrets_are_redacted_by_name_and_by_pattern(values, write: LogWriter):  # B63
    for as_json in (True, False):
        line = write(as_json=as_json, event="happened", **values)
        assert "canary" not in line
        assert "[hidden]" in line


def test_request_is_logged_without_its_query_and_with_its_id(client: Client, capsys, db):
    response = client.get("/login/?next=/canary", headers={"X-Request-ID": "abc-123"})

    assert response["X-Request-ID"] == "abc-123"
    (line,) = capsys.readouterr().err.splitlines()
    assert "abc-123" in line
    assert "canary" not in line


@pytest.mark.parametrize("request_id", ["a b", "x" * 65, "a\x1b[31m", "ü", ""])
def test_malformed_request_id_is_replaced(client: Client, request_id: str, db):
    returned_id = client.get("/healthz", headers={"X-Request-ID": request_id})["X-Request-ID"]

    assert returned_id != request_id
    assert len(returned_id) == 36


def test_path_cannot_inject_a_line(client: Client, capsys, db):
    client.get("/nowhere%0a2026 admin signed in%1b[31m")

    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line


def test_failed_log_write_is_ignored(client: Client, db, monkeypatch):
    class FullDiskFile(io.StringIO):
        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", FullDiskFile())
        assert client.get("/login/").status_code == 200


def test_web_process_writes_lines_of_requests_together(monkeypatch: pytest.MonkeyPatch):
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    line_buffer, logger = logs.LineBuffer(), logs.StderrLogger()
    monkeypatch.setattr(logs, "line_buffer", line_buffer)
    logger.info("at once")
    line_buffer.is_delayed = True  # without its thread
    for number in range(logs.MAX_BUFFERED_LINES - 1):
        logger.info(str(number))
    assert stream.getvalue() == "at once\n"
    logger.info("last")
    assert stream.getvalue().splitlines()[1:] == [*map(str, range(logs.MAX_BUFFERED_LINES - 1)), "last"]
    logger.info("before")
    logger.warning("problem")
    logger.info("after")
    assert stream.getvalue().splitlines()[-2:] == ["before", "problem"]
    line_buffer.stop()
    logger.info("at the end")
    assert stream.getvalue().splitlines()[-2:] == ["after", "at the end"]


def test_lines_are_grouped_into_atomic_writes(monkeypatch: pytest.MonkeyPatch):
    line_buffer = logs.LineBuffer()
    texts: list[str] = []
    monkeypatch.setattr("sys.stderr", SimpleNamespace(write=texts.append))
    line_buffer.is_delayed = True  # without its thread
    lengths = [700] * 20 + [select.PIPE_BUF] + [100] * 50
    for length in lengths:
        line_buffer.add("x" * length)
    line_buffer.write()
    assert [len(line) for line in "".join(texts).splitlines()] == lengths
    assert {len(text) for text in texts if len(text) > select.PIPE_BUF} == {select.PIPE_BUF + 1}  # one long line
    assert len(texts) == 7


def test_buffered_lines_are_written_after_a_moment(capfd: pytest.CaptureFixture[str]):
    line_buffer = logs.LineBuffer()
    line_buffer.start()
    try:
        line_buffer.add("line")
        assert eventually(lambda: capfd.readouterr().err == "line\n")
    finally:
        line_buffer.stop()


def test_long_lines_of_several_threads_do_not_mix():
    """Writes to an unbuffered pipe, as the processes of the product do."""
    script = (
        "import threading; from system.monitoring.logs import StderrLogger\n"
        "def write(n): [StderrLogger().info(str(n) * 20000) for _ in range(50)]\n"
        "threads = [threading.Thread(target=write, args=[n]) for n in range(4)]\n"
        "[thread.start() for thread in threads]; [thread.join() for thread in threads]"
    )
    completed = subprocess.run(
        [sys.executable, "-u", "-c", script], cwd=ROOT, stderr=subprocess.PIPE, text=True, check=True
    )

    assert {line for line in completed.stderr.splitlines() if len(line) != 20000 or len(set(line)) != 1} == set()
