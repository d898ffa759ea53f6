"""Who gets which status, everywhere: a new route, or a changed status, fails here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from tests.project.access import callers, matrix, world

MATRIX_FILE = Path(__file__).with_name("matrix.txt")
CALLERS, CELLS = matrix.read_matrix(MATRIX_FILE.read_text())
# What is there for everybody: the state of the service, its description, and the ways in and out.
PUBLIC_ROUTES = (
    "/healthz", "/readyz", "/api/schema", "/api/docs", "/api/docs/reference", "/api/docs/redoc.js",
    "/rest/v1/auth/login", "/", "/login/", "/logout/", "/sso/start/", "/sso/callback/", "/sso/logout/",
    "/sso/backchannel-logout/", "/admin/login/", "/admin/logout/", "/admin/jsi18n/",
)  # fmt: skip
PROGRAM_PREFIXES = ("/rest/", "/^rest/", "/api/", "/metrics", *(f"/^{name}/" for name in world.PARAMETERS))


def is_program_route(route: str) -> bool:
    return route.startswith(PROGRAM_PREFIXES) and route not in PUBLIC_ROUTES


def routes_with_status(name: str, *, status: str) -> Iterator[tuple[str, str]]:
    """Routes and methods at which this caller's answers begin so."""
    column = CALLERS.index(name)
    return (route for route, cells in CELLS.items() if cells[column].startswith(status))


def test_matrix_equals_the_stored_one(db: None, tmp_path: Path):  # X01
    now = tmp_path / "matrix.txt"
    now.write_text(matrix.matrix_text())

    advice = f"review {now}, and replace the stored matrix if every change is intended"
    assert now.read_text().splitlines() == MATRIX_FILE.read_text().splitlines(), advice


def test_no_response_is_a_server_error():
    """The provider of the connection here is away, which is said by 503."""
    assert [route for route, cells in CELLS.items() if "500" in cells] == []
    assert {route for route, cells in CELLS.items() if "503" in cells} <= {("/sso/start/", "GET")}


@pytest.mark.parametrize("name", ["nobody", "gone"])
def test_without_valid_credentials_only_public_routes_answer(name: str):
    assert {route for route, _ in routes_with_status(name, status="2")} <= set(PUBLIC_ROUTES)


def test_api_routes_answer_401_without_credentials(db: None):
    """Not even which methods there are."""
    column = CALLERS.index("nobody")
    result = {cells[column] for (route, _), cells in CELLS.items() if is_program_route(route)}
    assert result == {"401"}

    ids = world.make_world()
    for route in {route for route, _ in CELLS if is_program_route(route)}:
        response = Client().get(world.example_path(route.removeprefix("/"), ids))
        assert response.headers["WWW-Authenticate"], route


def test_browser_session_is_not_accepted_by_the_api():  # B57
    sessions = [CALLERS.index(caller) for caller in CALLERS if caller.endswith("@")]
    program_cells = [cells for (route, _), cells in CELLS.items() if route.startswith(("/^", "/metrics"))]

    assert {cells[column] for cells in program_cells for column in sessions} == {"401"}


def test_api_credentials_open_no_page():
    programs = [caller for caller in CALLERS if not caller.endswith("@")]
    anonymous_column = CALLERS.index("nobody")
    pages = [
        cells
        for (route, _), cells in CELLS.items()
        if not is_program_route(route) and route not in ("/api/docs", "/api/schema")
    ]

    assert pages
    assert all(cells[CALLERS.index(caller)] == cells[anonymous_column] for cells in pages for caller in programs)


@pytest.mark.parametrize(
    ("lesser_caller", "greater_caller"),
    [
        ("nobody", "person"), ("person", "itil"), ("person", "coll"), ("person", "sso"), ("person", "monitor"),
        ("itil", "admin"), ("coll", "admin"), ("sso", "admin"), ("monitor", "admin"), ("narrow", "admin"),
        ("narrow", "monitor"), ("person@", "sso@"), ("person@", "coll@"), ("sso@", "admin@"), ("coll@", "admin@"),
    ],
)  # fmt: skip
def test_more_roles_never_mean_less_access(lesser_caller: str, greater_caller: str):
    assert set(routes_with_status(lesser_caller, status="2")) <= set(routes_with_status(greater_caller, status="2"))


def test_each_role_opens_something():
    assert set(routes_with_status("itil", status="2")) > set(routes_with_status("person", status="2"))
    assert set(routes_with_status("monitor", status="2")) > set(routes_with_status("person", status="2"))
    assert {route for route, _ in routes_with_status("sso@", status="2")} & {"/admin/sso/oidcsetting/"}
    assert {route for route, _ in routes_with_status("coll@", status="2")} & {"/admin/collections_app/collection/"}


def test_every_caller_has_a_column(db: None):
    assert [caller.name for caller in callers.all_callers()] == CALLERS
