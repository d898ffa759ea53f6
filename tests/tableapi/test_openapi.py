"""The OpenAPI document: valid, and with only the tables that the caller may see."""

import json
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.test import Client
from drf_spectacular.validation import validate_schema

from accounts import demo as demo_people
from accounts.models import Role, User, UserRole
from system import errors
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, Table
from tableapi.setup import demo_records
from tests.support.users import PASSWORD
from tests.tableapi.designs import make_column, make_table

pytestmark = pytest.mark.django_db
BASE = "/rest/v1/table/"
GENERIC = {"/rest/v1/table/{tableName}", "/rest/v1/table/{tableName}/{sys_id}"}
METHODS = {"get", "put", "post", "patch", "delete"}


def described(login: str = "", client: Client | None = None) -> dict[str, Any]:
    pair = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {pair}"} if login else {}
    response = (client or Client()).get("/api/schema", headers=headers)
    assert response.status_code == 200
    document: dict[str, Any] = json.loads(response.content)
    return document


def tables_in(schema: dict[str, Any]) -> set[str]:
    paths = {path for path in schema["paths"] if path.startswith("/rest/v1/table/")} - GENERIC
    return {path.split("/")[4] for path in paths}


def operations(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, found in schema["paths"].items():
        for method, operation in found.items():
            yield path, method, operation


def record(schema: dict[str, Any], table: str) -> dict[str, Any]:
    result: dict[str, Any] = schema["components"]["schemas"][f"table.{table}"]["properties"]
    return result


def body(schema: dict[str, Any], table: str, kind: str) -> dict[str, Any]:
    """With what it takes over from another one."""
    schemas = schema["components"]["schemas"]
    result: dict[str, Any] = schemas[f"table.{table}.{kind}"]
    for part in result.get("allOf", ()):
        result = schemas[part["$ref"].rpartition("/")[2]] | result
    return result


def allow(table: Table, operation: str = "read", column: str = "", *roles: str, condition: str = "") -> None:
    ids = [Role.objects.get(name=name).pk for name in roles]
    saving.save_rule(Rule(table=table, operation=operation, column_name=column, roles=ids, condition=condition))


@pytest.fixture
def vault() -> Table:
    """A table that everybody reads, with a column for `itil` only and one that nobody reads."""
    table = make_table("vault")
    make_column(table, "title", mandatory=True, max_length=40)
    make_column(table, "code")
    make_column(table, "opened_on", "date")
    make_column(table, "shut_at", "datetime")
    make_column(table, "pin", "password")
    make_column(table, "counter", "integer", read_only=True)
    kind = make_column(table, "kind", "choice")
    for value in ("a", "b"):
        saving.save_choice(Choice(column=kind, value=value, label=value.upper()))
    for operation in ("read", "create", "write"):
        allow(table, operation)
    allow(table, "read", "code", "itil")
    return table


@pytest.mark.parametrize("login", ["", "bob", "alice"])
def test_document_is_valid_for_every_caller(login: str, alice: User, bob: User, vault: Table):
    schema = described(login)

    assert schema["openapi"].startswith("3.1")
    validate_schema(schema)
    ids = [operation["operationId"] for _, _, operation in operations(schema)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("login", ["", "alice"])
def test_every_reference_resolves(login: str, alice: User):
    schema = described(login)

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for child in node.values():
                yield from references(child)
        elif isinstance(node, list):
            for child in node:
                yield from references(child)

    result = set(references(schema))
    assert len(result) > 20
    for found in result:
        target: Any = schema
        for step in found.removeprefix("#/").split("/"):
            target = target[step]


def test_anonymous_callers_get_only_the_general_part(vault: Table):
    schema = described()

    assert set(schema["paths"]) >= GENERIC and tables_in(schema) == set()
    assert "vault" not in json.dumps(schema) and "short_description" not in json.dumps(schema)


def test_every_error_is_described_on_every_operation_that_can_have_it():
    schema = described()
    result = {(path, method): set(operation["responses"]) for path, method, operation in operations(schema)}
    one, many = sorted(GENERIC, key=len, reverse=True)

    everywhere = {"400", "401", "404", "414", "422", "429", "503"}
    writing = everywhere | {"403", "409"}
    bodies = writing | {"408", "411", "413", "415"}
    assert result[many, "get"] == everywhere | {"200"}
    assert result[one, "get"] == everywhere | {"200", "304"}
    assert result[many, "post"] == bodies | {"201"}
    assert result[one, "put"] == result[one, "patch"] == bodies | {"412", "200"}
    assert result[one, "delete"] == writing | {"412", "200"}
    assert {"400", "401", "422", "429", "503"} <= result["/rest/v1/auth/login", "post"]
    assert {"401", "503"} <= result["/api/me", "get"]


def test_described_errors_match_the_code():
    described_ones = described()["components"]["responses"]

    assert described_ones.pop("AnyError")
    for name, response in described_ones.items():
        example = response["content"]["application/json"]["example"]
        assert example["errors"][0]["code"] == getattr(errors, name).code


def test_impossible_operations_are_not_described(alice: User):
    paths = described("alice")["paths"]

    def methods(table: str) -> list[str]:
        return sorted(paths[f"{BASE}{table}"].keys() | paths[f"{BASE}{table}/{{sys_id}}"].keys())

    assert methods("sys_property") == ["delete", "get", "patch", "put"]
    assert methods("idp_certificate") == ["delete", "get"]
    assert methods("sys_deletion_log") == ["get"]
    for table in ("user", "sys_role", "sys_user_role", "sys_db_column", "oidc_setting", "sys_schedule"):
        assert methods(table) == sorted(METHODS), table


def test_boolean_parameter_lists_accepted_values():
    output = described()["components"]["parameters"]["display"]["schema"]
    assert sorted(output["enum"]) == ["0", "1", "all", "false", "true"]


def test_table_is_described_only_to_permitted_callers(alice: User, bob: User, vault: Table):  # B68
    hidden = make_table("hidden")
    make_column(hidden, "deep")

    assert tables_in(described("bob")) == {"vault", "user", "sys_group", "company", "service"}
    assert {"vault", "hidden", "task", "sys_acl"} <= tables_in(described("alice"))
    assert "hidden" not in json.dumps(described("bob"))


def test_reference_does_not_reveal_a_hidden_table(bob: User, vault: Table):  # B68
    hidden = make_table("hidden")
    make_column(vault, "about", "reference", reference_table=hidden)

    text = json.dumps(described("bob"))
    assert '"about"' in text and "hidden" not in text.lower()


def test_column_is_described_only_to_permitted_callers(alice: User, bob: User, vault: Table):  # B68
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    assert "code" in record(described("bob"), "vault")

    UserRole.objects.filter(user=bob).delete()
    schema = described("bob")
    assert "title" in record(schema, "vault")
    for found in (record(schema, "vault"), *(body(schema, "vault", kind)["properties"] for kind in BODIES)):
        assert "code" not in found


BODIES = ("create", "replace", "write")


def test_password_is_described_only_in_request_bodies(alice: User, vault: Table):
    schema = described("alice")

    assert "pin" not in record(schema, "vault")
    for kind in BODIES:
        assert body(schema, "vault", kind)["properties"]["pin"]["writeOnly"] is True


def test_import_id_is_described_to_administrators(alice: User, bob: User, vault: Table):
    actual, of_bob = described("alice"), described("bob")
    assert "sys_id" in body(actual, "vault", "create")["properties"]
    assert not any(
        "sys_id" in schema["properties"]
        for schema in (body(of_bob, "vault", "create"), body(actual, "company", "create"))
    )


def test_column_schema_describes_its_values(bob: User, vault: Table):
    schema = described("bob")
    columns, sent = record(schema, "vault"), body(schema, "vault", "create")

    assert columns["kind"]["enum"] == ["a", "b", None]
    assert columns["opened_on"]["format"] == "date"
    assert columns["sys_id"]["readOnly"] is columns["counter"]["readOnly"] is True
    assert sent["required"] == ["title"] and sent["properties"]["title"]["maxLength"] == 40
    assert not {"sys_id", "sys_version", "counter"} & set(sent["properties"])
    assert body(schema, "vault", "replace")["properties"]["sys_version"]["readOnly"] is True
    assert body(schema, "vault", "replace")["required"] == ["title"]
    assert "required" not in body(schema, "vault", "write")


def test_equal_schemas_are_shared(alice: User, vault: Table):
    """Programs load it whole, and so do the two pages."""
    response = Client().get(
        "/api/schema", headers={"Authorization": f"Basic {b64encode(f'alice:{PASSWORD}'.encode()).decode()}"}
    )
    assert b"\n" not in response.content and b'": ' not in response.content

    schema = response.json()
    times = schema["components"]["schemas"]["Time"]["pattern"]
    assert response.content.count(json.dumps(times).encode()) == 2, "what is read, and what is sent"
    replacing = schema["paths"]["/rest/v1/table/company/{sys_id}"]["put"]["requestBody"]["content"]["application/json"]
    assert replacing["schema"] == {"$ref": "#/components/schemas/table.company.replace"}
    parts = schema["components"]["schemas"]["table.company.replace"]
    assert parts == {"allOf": [{"$ref": "#/components/schemas/table.company.write"}], "required": ["name"]}


def test_only_permitted_operations_are_described(bob: User, vault: Table):
    paths = described("bob")["paths"]

    assert set(paths["/rest/v1/table/vault"]) == {"get", "post"}
    assert set(paths["/rest/v1/table/vault/{sys_id}"]) == {"get", "put", "patch"}
    assert set(paths["/rest/v1/table/company"]) == {"get"}


def test_create_only_caller_sees_no_read_operation(bob: User):
    box = make_table("box")
    make_column(box, "wish")
    allow(box, "create")

    schema = described("bob")
    assert set(schema["paths"]["/rest/v1/table/box"]) == {"post"}
    assert "/rest/v1/table/box/{sys_id}" not in schema["paths"]
    assert "wish" in body(schema, "box", "create")["properties"] and "table.box" not in schema["components"]["schemas"]


def test_new_column_is_described_immediately(bob: User, vault: Table):
    described("bob")
    make_column(vault, "fresh")

    assert "fresh" in record(described("bob"), "vault")
    Column.objects.get(table=vault, name="fresh").delete()
    assert "fresh" not in record(described("bob"), "vault")


def test_session_gets_its_tables(as_bob: Client, vault: Table):
    assert "vault" in tables_in(described(client=as_bob))


@pytest.mark.parametrize(
    ("page", "other"), [("/api/docs", "/api/docs/reference"), ("/api/docs/reference", "/api/docs")]
)
def test_documentation_pages_link_to_each_other(page: str, other: str):
    text = Client().get(page).content.decode()
    assert 'href="/"' in text and f'href="{other}"' in text


def test_security_schemes_are_described(alice: User):
    document = described("alice")
    with_session = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if any("session" in scheme for scheme in operation.get("security", []))
    }
    assert with_session and all(path == "/api/me" or path.startswith("/api/collections") for path in with_session)
    assert "press *Authorize* first" in document["info"]["description"]


def test_invalid_credentials_are_refused_not_ignored(bob: User):
    pair = b64encode(b"bob:wrong").decode()

    assert Client().get("/api/schema", headers={"Authorization": f"Basic {pair}"}).status_code == 401


def test_schemathesis_loads_every_operation():
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()

    result = list(schemathesis.openapi.from_dict(described("demo.agent")).get_all_operations())
    assert len(result) > 12 and all(isinstance(operation, schemathesis.core.result.Ok) for operation in result)
