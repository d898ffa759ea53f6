"""The matrix as text: a line per route and methods with equal responses, a column per caller."""

from collections.abc import Iterator

from tests.project.access import callers, world

ALL_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Django's administration handles every other method like one of these.
ADMIN_METHODS = ("GET", "POST")
StatusMatrix = dict[tuple[str, str], tuple[str, ...]]


def cell_of(response: object) -> str:
    """The status, or `login` for a redirect to the sign-in page."""
    status, location = getattr(response, "status_code"), getattr(response, "headers").get("Location", "")  # noqa: B009
    return "login" if status == 302 and "/login/" in location else str(status)


def statuses_of_route(
    route: str, all_callers: list[callers.MatrixCaller], ids: dict[str, str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    path = world.example_path(route, ids)
    for method in ADMIN_METHODS if route.startswith("admin/") else ALL_METHODS:
        yield method, tuple(cell_of(caller.request(method, path)) for caller in all_callers)


def rows_of_route(route: str, all_callers: list[callers.MatrixCaller], ids: dict[str, str]) -> Iterator[str]:
    """One line for all methods with the same statuses."""
    methods_by_statuses: dict[tuple[str, ...], list[str]] = {}
    for method, cells in statuses_of_route(route, all_callers, ids):
        methods_by_statuses.setdefault(cells, []).append(method)
    for cells, methods in methods_by_statuses.items():
        yield format_line(f"/{route}", ",".join(methods), cells)


def format_line(route: str, methods: str, cells: tuple[str, ...]) -> str:
    return f"{route:<88} {methods:<46}" + "".join(f"{cell:>8}" for cell in cells)


def build_matrix_text() -> str:
    ids, all_callers = world.create_example_objects(), callers.create_callers()
    all_routes = dict.fromkeys(world.routes())
    header = format_line("# route", "methods", tuple(caller.name for caller in all_callers))
    return "\n".join([header, *(row for route in all_routes for row in rows_of_route(route, all_callers, ids))]) + "\n"


def read_matrix(text: str) -> tuple[list[str], StatusMatrix]:
    """The names of the callers, and their statuses by route and method."""
    header, *lines = [line.split() for line in text.splitlines()]
    statuses = {(route, method): tuple(cells) for route, methods, *cells in lines for method in methods.split(",")}
    return header[3:], statuses
