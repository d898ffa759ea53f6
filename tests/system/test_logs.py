"""Logs hold no secrets and no forged lines."""

import io
import json
import logging
import logging.config

import pytest
import structlog
from django.test import Client
from hypothesis import given
from hypothesis import strategies as some

from system import logs


def written(*, as_json: bool, event: str, **values) -> str:
    """What one line looks like in the log."""
    config = logs.logging_config(as_json=as_json)
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    formatter = dict(config["formatters"]["line"])
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(**{k: v for k, v in formatter.items() if k != "()"}))
    logger = logging.getLogger("tests.logs")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    structlog.stdlib.get_logger("tests.logs").info(event, **values)
    return stream.getvalue()


@pytest.mark.parametrize("as_json", [True, False])
@given(text=some.text(max_size=60))
def test_one_event_is_one_line_whatever_it_holds(as_json: bool, text: str):  # X09
    line = written(as_json=as_json, event="happened", typed=text)

    assert line.count("\n") == 1
    assert line.endswith("\n")
    assert "\x1b" not in line
    assert "\r" not in line


def test_production_lines_are_json():
    line = json.loads(written(as_json=True, event="happened", count=3))

    assert (line["event"], line["count"], line["level"]) == ("happened", 3, "info")


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
def test_secrets_are_hidden_by_name_and_by_form(values):  # B63
    for as_json in (True, False):
        line = written(as_json=as_json, event="happened", **values)
        assert "canary" not in line
        assert "[hidden]" in line


def test_a_request_is_logged_without_its_query_and_with_its_id(client: Client, caplog, db):
    with caplog.at_level(logging.INFO):
        answer = client.get("/login/?next=/canary", headers={"X-Request-ID": "abc-123"})

    assert answer["X-Request-ID"] == "abc-123"
    assert "abc-123" in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.parametrize("sent", ["a b", "x" * 65, "a\x1b[31m", "ü", ""])
def test_a_request_id_of_another_form_is_replaced(client: Client, sent: str, db):
    given_back = client.get("/healthz", headers={"X-Request-ID": sent})["X-Request-ID"]

    assert given_back != sent
    assert len(given_back) == 36


def test_a_path_cannot_forge_a_line(client: Client, caplog, db):
    with caplog.at_level(logging.INFO):
        client.get("/nowhere%0a2026 admin signed in%1b[31m")

    assert all("\x1b" not in record.getMessage() and "\n2026" not in record.getMessage() for record in caplog.records)
