"""Logging: JSON lines in production, readable lines in development, without secrets or forged lines."""

import atexit
import json
import os
import re
import select
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from functools import cache
from typing import Any

import structlog

# Names of values that are never logged.
SECRET_NAMES = re.compile(r"password|secret|token|authorization|cookie|api_?key|verifier|assertion", re.IGNORECASE)
# Bearer tokens and Basic credentials in free text, and access keys.
SECRET_TEXT_PATTERN = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}|\bsb_[\w-]{20,}")
CONTROL_CHARACTER_PATTERN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
# Most texts match this and need no cleaning. The text of a request begins with its method.
PLAIN_TEXT_PATTERN = re.compile(r"(?:(?:GET|POST|PUT|PATCH|DELETE) )?[A-Za-z0-9.:/-]*+")


def clean(value: Any) -> Any:
    """The value without secrets and without characters that could forge a line.

    >>> clean("first\\nsecond \\x1b[31m")
    'first\\\\x0asecond \\\\x1b[31m'
    """
    if isinstance(value, str):
        if PLAIN_TEXT_PATTERN.fullmatch(value):
            return value
        value = SECRET_TEXT_PATTERN.sub("[hidden]", value)
        return CONTROL_CHARACTER_PATTERN.sub(lambda match: f"\\x{ord(match.group()):02x}", value)
    if isinstance(value, dict):
        return {name: "[hidden]" if SECRET_NAMES.search(str(name)) else clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


@cache
def is_secret_name(name: str) -> bool:
    """Cached, because log calls in the code use few names."""
    return SECRET_NAMES.search(name) is not None


# Tracebacks have several lines, which are cleaned one by one.
MULTILINE_NAMES = ("exception", "exc_info", "stack_info")


def redact(_logger: Any, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
    """The structlog processor that removes secrets from every line."""
    for name in event:
        if name in MULTILINE_NAMES:
            if isinstance(event[name], str):
                event[name] = "\n".join(clean(line) for line in event[name].split("\n"))
        elif is_secret_name(name):
            event[name] = "[hidden]"
        elif name == "request" and not isinstance(event[name], str):
            # Django logs the request object, whose text contains the query string, for example with a code or state.
            event[name] = clean(f"{getattr(event[name], 'method', '')} {getattr(event[name], 'path', '')}")
        elif not name.startswith("_"):
            event[name] = clean(event[name])
    return event


# The processors of every line, including those that libraries log through Python's logging.
COMMON_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def render_line(_logger: Any, _method: str, event: structlog.types.EventDict) -> str:
    """The structlog processor that formats a line for people."""
    leading_parts = [event.pop("timestamp", ""), f"[{event.pop('level', ''):<9}]", f"{event.pop('event', '')!s:<30}"]
    name = event.pop("logger", "")
    trailing_lines = [f"\n{event.pop(part)}" for part in ("stack", "exception") if part in event]
    values = [f"{key}={quote_if_needed(event[key])}" for key in sorted(event) if not key.startswith("_")]
    return " ".join([*leading_parts, f"[{name}]", *values]) + "".join(trailing_lines)


def quote_if_needed(value: Any) -> str:
    return value if isinstance(value, str) and PLAIN_TEXT_PATTERN.fullmatch(value) and " " not in value else repr(value)


# Created once: `json.dumps` with a default would create one for each line.
ENCODER = json.JSONEncoder(default=repr)


def final_processors(*, as_json: bool) -> list[Any]:
    """The processors that turn the values of a line into its text."""
    json_renderer = structlog.processors.JSONRenderer(lambda event, **_: ENCODER.encode(event))
    renderer: Any = json_renderer if as_json else render_line
    return [structlog.processors.format_exc_info, redact, renderer]


# They log each task, or each request to a provider with its URL.
QUIET_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace", "httpx", "httpcore", "httpx2", "openai")


def logging_config(*, as_json: bool) -> dict[str, Any]:
    """Django's LOGGING setting: libraries log in the same format as the product."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "line": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": [
                    *COMMON_PROCESSORS,
                    structlog.stdlib.PositionalArgumentsFormatter(),
                    structlog.stdlib.ExtraAdder(),
                ],
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *final_processors(as_json=as_json),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "INFO"},
        "loggers": {
            "django": {"handlers": [], "level": "INFO", "propagate": True},
            # Its messages contain the URL with the query; the request log contains only the path.
            "django.request": {"level": "ERROR"},
            # Anyone can send a wrong host name. The line of the request reports it without a traceback.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "django.server": {"handlers": [], "propagate": True},
            **{name: {"level": "WARNING"} for name in QUIET_LOGGERS},
        },
    }


WRITE_INTERVAL_S = 0.1
MAX_BUFFERED_LINES = 500


class LineBuffer:
    """Lines that are not written yet. During each write, another thread takes the interpreter lock, and the relay wakes
    up. So a web process writes lines together, up to 0.1 s later. Other processes write each line immediately."""

    def __init__(self) -> None:
        self.reset()
        os.register_at_fork(after_in_child=self.reset)

    def reset(self) -> None:
        self.lines: deque[str] = deque()
        self.is_delayed = False
        self.lock = threading.RLock()  # reentrant, because a signal handler can log while its thread holds the lock

    def start(self) -> None:
        self.is_delayed = True
        threading.Thread(target=self._run, name="log lines", daemon=True).start()
        atexit.register(self.write)

    def stop(self) -> None:
        self.is_delayed = False
        self.write()

    def add(self, line: str) -> None:
        self.lines.append(f"{line}\n")
        if not self.is_delayed or len(self.lines) >= MAX_BUFFERED_LINES:
            self.write()

    def write(self) -> None:
        with self.lock:
            while text := self._next_text():
                try:
                    sys.stderr.write(text)
                except (OSError, ValueError):
                    pass  # full disk or closed pipe: as in Python's logging, this must not fail the request

    def _next_text(self) -> str:
        """Take as many lines as a pipe accepts in one piece. Longer writes could mix with those of other processes."""
        text = ""
        with suppress(IndexError):
            while not text or len(text) + len(self.lines[0]) <= select.PIPE_BUF:
                text += self.lines.popleft()
        return text

    def _run(self) -> None:
        while self.is_delayed:
            time.sleep(WRITE_INTERVAL_S)
            self.write()


line_buffer = LineBuffer()


class StderrLogger:
    """Writes lines directly to standard error, which takes a third of the time of Python's logging."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def info(self, line: str) -> None:
        line_buffer.add(line)

    def warning(self, line: str) -> None:
        line_buffer.add(line)
        line_buffer.write()

    debug, error, critical = info, warning, warning


def configure(*, as_json: bool) -> None:
    """Configure structlog for every logger of the product."""
    merge, *context_processors = COMMON_PROCESSORS
    *cleaners, renderer = final_processors(as_json=as_json)
    structlog.configure(
        processors=[merge, *cleaners, *context_processors, renderer],  # the context has no secrets
        logger_factory=StderrLogger,
        wrapper_class=structlog.make_filtering_bound_logger("info"),
        cache_logger_on_first_use=True,
    )
