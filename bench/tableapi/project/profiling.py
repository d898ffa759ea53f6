"""In charge of where the application's CPU goes: requests to the WSGI application, in this process, under cProfile."""

import cProfile
import io
import itertools
import pstats
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import unquote

from config.env import ROOT
from config.wsgi import application

WARM_UP, PLAIN, PROFILED = 50, 1_000, 1_000
SHOWN = 25


def environ(method: str, path: str, body: str, key: str) -> dict[str, Any]:
    plain, _, query = path.partition("?")
    return {
        "REQUEST_METHOD": method, "PATH_INFO": unquote(plain), "QUERY_STRING": query, "SCRIPT_NAME": "",
        "SERVER_NAME": "127.0.0.1", "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "127.0.0.1", "HTTP_AUTHORIZATION": f"Bearer {key}",
        "CONTENT_TYPE": "application/json" if body else "", "CONTENT_LENGTH": str(len(body)) if body else "",
        "wsgi.version": (1, 0), "wsgi.url_scheme": "http", "wsgi.errors": io.StringIO(), "wsgi.multithread": True,
        "wsgi.multiprocess": True, "wsgi.run_once": False, "wsgi.input": io.BytesIO(body.encode()),
    }  # fmt: skip


def asking(method: str, paths: Sequence[str], body: str, key: str) -> Callable[[int], None]:
    """What sends so many requests and takes in their answers."""
    turns = itertools.cycle(paths)
    seen: list[str] = []

    def start_response(status: str, headers: Any, *_: Any) -> None:
        seen.append(status)

    def ask(times: int) -> None:
        for number in range(times):
            filled = re.sub("@{10}", f"{time.time_ns() % 10**6:06}{number:04}", body)
            answer = application(environ(method, next(turns), filled, key), start_response)
            b"".join(answer)
            answer.close()  # type: ignore[attr-defined]
        if wrong := {status for status in seen if not status.startswith("2")}:
            raise SystemExit(f"answered {wrong}")
        seen.clear()

    return ask


def package(file: str) -> str:
    """
    >>> package("/x/site-packages/django/db/utils.py"), package("/x/lib/python3.11/re/_parser.py")
    ('django.db', 'Python')
    """
    _, is_installed, inside = file.partition("/site-packages/")
    if is_installed:
        return ".".join(inside.split("/")[: 2 if inside.startswith("django/") else 1])
    if file.startswith(str(ROOT)):
        return ".".join(file[len(str(ROOT)) + 1 :].removesuffix(".py").split("/")[:2])
    return "Python"


def by_package(found: pstats.Stats) -> list[tuple[str, float]]:
    """Shares of the whole, each package with the functions of C and of Python's own library that it called."""
    times: Counter[str] = Counter()
    for (file, _, _), (_, _, own, _, callers) in found.stats.items():  # type: ignore[attr-defined]
        if package(file) != "Python" or not callers:
            times[package(file)] += own
        else:
            for (caller, _, _), (_, _, part, _) in callers.items():
                times[package(caller)] += part
    return [(name, own / times.total()) for name, own in times.most_common(SHOWN)]


def profile(ask: Callable[[int], None]) -> str:
    """The CPU of a request without the profiler, and its functions by what they and what all below them took."""
    ask(WARM_UP)
    began = time.process_time()
    ask(PLAIN)
    plain = 1000 * (time.process_time() - began) / PLAIN
    profiler = cProfile.Profile(time.process_time)
    profiler.runcall(ask, PROFILED)
    out = io.StringIO()
    found = pstats.Stats(profiler, stream=out)
    out.write(f"{plain:.3f} ms of CPU a request without the profiler; its parts, by their share under it:\n")
    for name, share in by_package(found):
        out.write(f"{plain * share:8.3f} ms  {name}\n")
    out.write(f"Below, seconds of {PROFILED:,} requests under the profiler\n")
    for order in ("tottime", "cumulative"):
        found.sort_stats(order).print_stats(SHOWN)
    return out.getvalue()
