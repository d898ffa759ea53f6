"""Compares the status of every route and caller with the stored matrix; fails for new routes and statuses."""

import difflib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import Client

from tests.project.access import callers, matrix, world

MATRIX_FILE = Path(__file__).with_name("matrix.txt")
CALLER_NAMES, STATUS_MATRIX = matrix.read_matrix(MATRIX_FILE.read_text())
# Routes without authentication: health, API description, sign-in and sign-out.
PUBLIC_ROUTES = (
    "/healthz", "/readyz", "/api/schema", "/api/docs", "/api/docs/reference", "/api/docs/redoc.js",
    "/rest/v1/auth/login", "/", "/login/", "/logout/", "/sso/start/", "/sso/callback/", "/sso/logout/",
    "/sso/backchannel-logout/", "/admin/login/", "/admin/logout/", "/admin/jsi18n/",
)  # fmt: skip
PROGRAM_PREFIXES = (
    "/rest/",
    "/^rest/",
    "/api/",
    "/v1/",
    "/^api/",
    "/^mcp/",
    "/metrics",
    *(f"/^{name}/" for name in world.REQUIRED_PARAMETERS),
)


def is_program_route(route: str) -> bool:
    return route.startswith(PROGRAM_PREFIXES) and route not in PUBLIC_ROUTES


def routes_with_status(caller_name: str, *, status: str) -> Iterator[tuple[str, str]]:
    """Routes and methods for which this caller gets a status that starts with `status`."""
    column = CALLER_NAMES.index(caller_name)
    return (route_and_method for route_and_method, cells in STATUS_MATRIX.items() if cells[column].startswith(status))


def test_matrix_equals_the_stored_matrix(db: None, tmp_path: Path):  # X01
    current_file = tmp_path / "matrix.txt"
    current_file.write_text(matrix.build_matrix_text())

    stored_lines, current_lines = MATRIX_FILE.read_text().splitlines(), current_file.read_text().splitlines()
    differences = [*difflib.unified_diff(stored_lines, current_lines, "stored", str(current_file), n=0, lineterm="")]
    if differences:
        pytest.fail("\n".join(["Copy the new file if each of these changes is intended:", *differences]), pytrace=False)


def test_no_response_is_a_server_error():
    assert [route for route, cells in STATUS_MATRIX.items() if {"500", "503"} & set(cells)] == []


@pytest.mark.parametrize("caller_name", ["nobody", "gone"])
def test_only_public_routes_accept_callers_without_valid_credentials(caller_name: str):
    assert {route for route, _ in routes_with_status(caller_name, status="2")} <= set(PUBLIC_ROUTES)


def test_api_routes_answer_401_without_credentials(db: None):
    """Not even the allowed methods are revealed."""
    column = CALLER_NAMES.index("nobody")
    statuses = {cells[column] for (route, _), cells in STATUS_MATRIX.items() if is_program_route(route)}
    assert statuses == {"401"}

    ids = world.create_example_objects()
    for route in {route for route, _ in STATUS_MATRIX if is_program_route(route)}:
        response = Client().get(world.example_path(route.removeprefix("/"), ids))
        assert response.headers["WWW-Authenticate"], route


def test_browser_session_is_not_accepted_by_the_api():  # B57
    browser_columns = [CALLER_NAMES.index(name) for name in CALLER_NAMES if name.endswith("@")]
    program_cells = [cells for (route, _), cells in STATUS_MATRIX.items() if route.startswith(("/^", "/metrics"))]

    assert {cells[column] for cells in program_cells for column in browser_columns} == {"401"}


def test_api_credentials_do_not_open_pages():
    program_columns = [CALLER_NAMES.index(name) for name in CALLER_NAMES if not name.endswith("@")]
    anonymous_column = CALLER_NAMES.index("nobody")
    page_cells = [
        cells
        for (route, _), cells in STATUS_MATRIX.items()
        if not is_program_route(route) and route not in ("/api/docs", "/api/schema")
    ]

    assert page_cells
    assert all(cells[column] == cells[anonymous_column] for cells in page_cells for column in program_columns)


@pytest.mark.parametrize(
    ("base_caller", "superset_caller"),
    [
        ("nobody", "person"), ("person", "itil"), ("person", "coll"), ("person", "sso"), ("person", "monitor"),
        ("itil", "admin"), ("coll", "admin"), ("sso", "admin"), ("monitor", "admin"), ("narrow", "admin"),
        ("narrow", "monitor"), ("person@", "sso@"), ("person@", "coll@"), ("sso@", "admin@"), ("coll@", "admin@"),
    ],
)  # fmt: skip
def test_additional_roles_never_reduce_access(base_caller: str, superset_caller: str):
    assert set(routes_with_status(base_caller, status="2")) <= set(routes_with_status(superset_caller, status="2"))


def test_each_role_grants_access_to_more_routes():
    assert set(routes_with_status("itil", status="2")) > set(routes_with_status("person", status="2"))
    assert set(routes_with_status("monitor", status="2")) > set(routes_with_status("person", status="2"))
    assert {route for route, _ in routes_with_status("sso@", status="2")} & {"/admin/sso/oidcsetting/"}
    assert {route for route, _ in routes_with_status("coll@", status="2")} & {"/admin/collections_app/collection/"}


def test_every_caller_has_a_column(db: None):
    assert [caller.name for caller in callers.create_callers()] == CALLER_NAMES
