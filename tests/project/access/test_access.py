"""Who gets which status, everywhere: a new route, or a changed status, fails here."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from tests.project.access import callers, matrix, world

KNOWN = Path(__file__).with_name("matrix.txt")
CALLERS, CELLS = matrix.read(KNOWN.read_text())
# What is there for everybody: the state of the service, its description, and the ways in and out.
OPEN = (
    "/healthz", "/readyz", "/api/schema", "/api/docs", "/api/docs/reference", "/api/docs/redoc.js",
    "/rest/v1/auth/login", "/", "/login/", "/logout/", "/sso/start/", "/sso/callback/", "/sso/logout/",
    "/sso/backchannel-logout/", "/admin/login/", "/admin/logout/", "/admin/jsi18n/",
)  # fmt: skip
FOR_PROGRAMS = ("/rest/", "/^rest/", "/api/", "/metrics", *(f"/^{name}/" for name in world.PARAMETERS))


def is_for_programs(route: str) -> bool:
    return route.startswith(FOR_PROGRAMS) and route not in OPEN


def answered(name: str, *, that: str) -> Iterator[tuple[str, str]]:
    """Routes and methods at which this caller's answers begin so."""
    at = CALLERS.index(name)
    return (place for place, cells in CELLS.items() if cells[at].startswith(that))


def test_matrix_equals_the_stored_one(db: None, tmp_path: Path):  # X01
    now = tmp_path / "matrix.txt"
    now.write_text(matrix.whole())

    advice = f"review {now}, and replace the stored matrix if every change is intended"
    assert now.read_text().splitlines() == KNOWN.read_text().splitlines(), advice


def test_no_response_is_a_server_error():
    """The provider of the connection here is away, which is said by 503."""
    assert [place for place, cells in CELLS.items() if "500" in cells] == []
    assert {place for place, cells in CELLS.items() if "503" in cells} <= {("/sso/start/", "GET")}


@pytest.mark.parametrize("name", ["nobody", "gone"])
def test_without_valid_credentials_only_public_routes_answer(name: str):
    assert {route for route, _ in answered(name, that="2")} <= set(OPEN)


def test_api_routes_answer_401_without_credentials(db: None):
    """Not even which methods there are."""
    at = CALLERS.index("nobody")
    result = {cells[at] for (route, _), cells in CELLS.items() if is_for_programs(route)}
    assert result == {"401"}

    ids = world.make()
    for route in {route for route, _ in CELLS if is_for_programs(route)}:
        refused = Client().get(world.example(route.removeprefix("/"), ids))
        assert refused.headers["WWW-Authenticate"], route


def test_browser_session_is_not_accepted_by_the_api():  # B57
    sessions = [CALLERS.index(caller) for caller in CALLERS if caller.endswith("@")]
    at_programs = [cells for (route, _), cells in CELLS.items() if route.startswith(("/^", "/metrics"))]

    assert {cells[at] for cells in at_programs for at in sessions} == {"401"}


def test_api_credentials_open_no_page():
    programs = [caller for caller in CALLERS if not caller.endswith("@")]
    nobody = CALLERS.index("nobody")
    pages = [
        cells
        for (route, _), cells in CELLS.items()
        if not is_for_programs(route) and route not in ("/api/docs", "/api/schema")
    ]

    assert pages
    assert all(cells[CALLERS.index(caller)] == cells[nobody] for cells in pages for caller in programs)


@pytest.mark.parametrize(
    ("fewer", "more"),
    [
        ("nobody", "person"), ("person", "itil"), ("person", "coll"), ("person", "sso"), ("person", "monitor"),
        ("itil", "admin"), ("coll", "admin"), ("sso", "admin"), ("monitor", "admin"), ("narrow", "admin"),
        ("narrow", "monitor"), ("person@", "sso@"), ("person@", "coll@"), ("sso@", "admin@"), ("coll@", "admin@"),
    ],
)  # fmt: skip
def test_more_roles_never_mean_less_access(fewer: str, more: str):
    assert set(answered(fewer, that="2")) <= set(answered(more, that="2"))


def test_each_role_opens_something():
    assert set(answered("itil", that="2")) > set(answered("person", that="2"))
    assert set(answered("monitor", that="2")) > set(answered("person", that="2"))
    assert {route for route, _ in answered("sso@", that="2")} & {"/admin/sso/oidcsetting/"}
    assert {route for route, _ in answered("coll@", that="2")} & {"/admin/collections_app/collection/"}


def test_every_caller_has_a_column(db: None):
    assert [caller.name for caller in callers.everybody()] == CALLERS
