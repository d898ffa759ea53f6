"""Logging: JSON lines in production, readable lines in development, no secrets or forged lines."""

import os
import re
import sys
import threading
from typing import Any

import structlog

# Names of values that never go into a log, wherever they come from.
SECRET_NAMES = re.compile(r"password|secret|token|authorization|cookie|api_?key|verifier|assertion", re.IGNORECASE)
# Bearer keys and Basic pairs that found their way into free text, and our own access keys.
SECRET_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}|\bsb_[\w-]{20,}")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def clean(value: Any) -> Any:
    """A value without secrets and without characters that could forge a line.

    >>> clean("first\\nsecond \\x1b[31m")
    'first\\\\x0asecond \\\\x1b[31m'
    """
    if isinstance(value, str):
        value = SECRET_TEXT.sub("[hidden]", value)
        return CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", value)
    if isinstance(value, dict):
        return {name: "[hidden]" if SECRET_NAMES.search(str(name)) else clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


# A traceback is many lines on purpose; its text is cleaned line by line.
WHOLE = ("exception", "exc_info", "stack_info")


def redact(_logger: Any, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """The processor that every line passes."""
    for name in event:
        if name in WHOLE:
            if isinstance(event[name], str):
                event[name] = "\n".join(clean(line) for line in event[name].split("\n"))
        elif SECRET_NAMES.search(name):
            event[name] = "[hidden]"
        elif name == "request" and not isinstance(event[name], str):
            # Django's own lines carry the request, whose text has the address with its query: a code, a state.
            event[name] = clean(f"{getattr(event[name], 'method', '')} {getattr(event[name], 'path', '')}")
        elif not name.startswith("_"):
            event[name] = clean(event[name])
    return event


# What every line gets, ours and those that libraries write through Python's logging.
NAMED_AND_DATED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def finish(*, as_json: bool) -> list[Any]:
    """From a line's values to its text."""
    renderer: Any = structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False)
    return [structlog.processors.format_exc_info, redact, renderer]


def logging_config(*, as_json: bool) -> dict[str, Any]:
    """Django's LOGGING: what libraries log, in the form of our own lines."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [
                    *NAMED_AND_DATED,
                    structlog.stdlib.PositionalArgumentsFormatter(),
                    structlog.stdlib.ExtraAdder(),
                ],
                "processors": [structlog.stdlib.ProcessorFormatter.remove_processors_meta, *finish(as_json=as_json)],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            # Its messages repeat the request's address with the query; our own request log has the path alone.
            "django.request": {"level": "ERROR"},
            # Anybody can send a wrong name; the request's own line tells it, without a traceback.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "propagate": True},
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            # Each request of the embedding provider's client, with its address.
            "httpx2": {"level": "WARNING"},
            "openai": {"level": "WARNING"},
        },
    }


# Long lines are written in pieces. One thread may come back here from a signal's handler.
TURN = threading.RLock()
os.register_at_fork(after_in_child=lambda: globals().update(TURN=threading.RLock()))


class Line:
    """Writes our own lines straight to standard error: through Python's logging each cost three times that."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def write(self, line: str) -> None:
        with TURN:
            try:
                sys.stderr.write(f"{line}\n")
            except (OSError, ValueError):
                pass  # a full disk, a closed pipe: as in Python's logging, no request fails for its log line

    debug = info = warning = error = critical = write


def configure(*, as_json: bool) -> None:
    """structlog, for every logger of ours."""
    structlog.configure(
        processors=[*NAMED_AND_DATED, *finish(as_json=as_json)],
        logger_factory=Line,
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        cache_logger_on_first_use=True,
    )
