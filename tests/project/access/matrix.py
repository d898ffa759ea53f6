"""The matrix as text: a line for the methods of a route with equal responses, a column for each caller."""

from collections.abc import Iterator

from tests.project.access import callers, world

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Django's administration answers other methods like one of these.
ADMIN_METHODS = ("GET", "POST")
Cells = dict[tuple[str, str], tuple[str, ...]]


def cell(response: object) -> str:
    """The status; `login` where a page asks to sign in first."""
    status, to = getattr(response, "status_code"), getattr(response, "headers").get("Location", "")  # noqa: B009
    return "login" if status == 302 and "/login/" in to else str(status)


def asked(route: str, everybody: list[callers.Caller], ids: dict[str, str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    path = world.example(route, ids)
    for method in ADMIN_METHODS if route.startswith("admin/") else METHODS:
        yield method, tuple(cell(caller.ask(method, path)) for caller in everybody)


def rows(route: str, everybody: list[callers.Caller], ids: dict[str, str]) -> Iterator[str]:
    """Methods with the same answers share a line."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for method, cells in asked(route, everybody, ids):
        alike.setdefault(cells, []).append(method)
    for cells, methods in alike.items():
        yield line(f"/{route}", ",".join(methods), cells)


def line(route: str, methods: str, cells: tuple[str, ...]) -> str:
    return f"{route:<88} {methods:<46}" + "".join(f"{cell:>8}" for cell in cells)


def whole() -> str:
    ids, everybody = world.make(), callers.everybody()
    actual = dict.fromkeys(world.routes())
    head = line("# route", "methods", tuple(caller.name for caller in everybody))
    return "\n".join([head, *(row for route in actual for row in rows(route, everybody, ids))]) + "\n"


def read(text: str) -> tuple[list[str], Cells]:
    """The callers, and what each of them is answered, by route and method."""
    head, *lines = [line.split() for line in text.splitlines()]
    result = {(route, method): tuple(cells) for route, methods, *cells in lines for method in methods.split(",")}
    return head[3:], result
