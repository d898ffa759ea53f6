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
BASE_PATH = "/rest/v1/table/"
GENERAL_PATHS = {f"/rest/v1/table/{{tableName}}{suffix}" for suffix in ("", "/{sys_id}", "/{sys_id}/history")}
HTTP_METHODS = {"get", "put", "post", "patch", "delete"}


def fetch_schema(login: str = "", client: Client | None = None) -> dict[str, Any]:
    credentials = b64encode(f"{login}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {credentials}"} if login else {}
    response = (client or Client()).get("/api/schema", headers=headers)
    assert response.status_code == 200
    document: dict[str, Any] = json.loads(response.content)
    return document


def tables_in(schema: dict[str, Any]) -> set[str]:
    paths = {path for path in schema["paths"] if path.startswith("/rest/v1/table/") and "{tableName}" not in path}
    return {path.split("/")[4] for path in paths}


def operations_of(schema: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, path_item in schema["paths"].items():
        for method, operation in path_item.items():
            yield path, method, operation


def record_schema(schema: dict[str, Any], table: str) -> dict[str, Any]:
    properties: dict[str, Any] = schema["components"]["schemas"][f"table.{table}"]["properties"]
    return properties


def body_schema(schema: dict[str, Any], table: str, body_kind: str) -> dict[str, Any]:
    """The schema of a body, including the properties that it inherits."""
    schemas = schema["components"]["schemas"]
    resolved_schema: dict[str, Any] = schemas[f"table.{table}.{body_kind}"]
    for parent in resolved_schema.get("allOf", ()):
        resolved_schema = schemas[parent["$ref"].rpartition("/")[2]] | resolved_schema
    return resolved_schema


def make_rule(table: Table, operation: str = "read", column: str = "", *roles: str, condition: str = "") -> None:
    role_ids = [Role.objects.get(name=name).pk for name in roles]
    saving.save_rule(Rule(table=table, operation=operation, column_name=column, roles=role_ids, condition=condition))


@pytest.fixture
def vault_table() -> Table:
    """A table that everybody may read, with a column for `itil` only and a password, which no one may read."""
    table = make_table("vault")
    make_column(table, "title", mandatory=True, max_length=40)
    make_column(table, "code")
    make_column(table, "opened_on", "date")
    make_column(table, "shut_at", "datetime")
    make_column(table, "pin", "password")
    make_column(table, "counter", "integer", read_only=True)
    kind_column = make_column(table, "kind", "choice")
    for value in ("a", "b"):
        saving.save_choice(Choice(column=kind_column, value=value, label=value.upper()))
    for operation in ("read", "create", "write"):
        make_rule(table, operation)
    make_rule(table, "read", "code", "itil")
    return table


@pytest.mark.parametrize("login", ["", "bob", "alice"])
def test_document_is_valid_for_every_caller(login: str, alice: User, bob: User, vault_table: Table):
    schema = fetch_schema(login)

    assert schema["openapi"].startswith("3.1")
    validate_schema(schema)
    operation_ids = [operation["operationId"] for _, _, operation in operations_of(schema)]
    assert len(operation_ids) == len(set(operation_ids))


@pytest.mark.parametrize("login", ["", "alice"])
def test_every_reference_resolves(login: str, alice: User):
    schema = fetch_schema(login)

    def references(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "$ref" in node:
                yield node["$ref"]
            for child in node.values():
                yield from references(child)
        elif isinstance(node, list):
            for child in node:
                yield from references(child)

    all_references = set(references(schema))
    assert len(all_references) > 20
    for reference in all_references:
        target: Any = schema
        for key in reference.removeprefix("#/").split("/"):
            target = target[key]


def test_anonymous_callers_get_only_the_general_part(vault_table: Table):
    schema = fetch_schema()

    assert set(schema["paths"]) >= GENERAL_PATHS and tables_in(schema) == set()
    assert "vault" not in json.dumps(schema) and "short_description" not in json.dumps(schema)


def test_every_error_is_described_on_every_operation_that_can_have_it():
    schema = fetch_schema()
    statuses = {(path, method): set(operation["responses"]) for path, method, operation in operations_of(schema)}
    list_path, record_path, _ = sorted(GENERAL_PATHS, key=len)

    common_statuses = {"400", "401", "404", "414", "422", "429", "503"}
    write_statuses = common_statuses | {"403", "409"}
    body_statuses = write_statuses | {"408", "411", "413", "415"}
    assert statuses[list_path, "get"] == common_statuses | {"200", "413"}
    assert statuses[record_path, "get"] == common_statuses | {"200", "304"}
    assert statuses[list_path, "post"] == body_statuses | {"201"}
    assert statuses[record_path, "put"] == statuses[record_path, "patch"] == body_statuses | {"412", "200"}
    assert statuses[record_path, "delete"] == write_statuses | {"412", "200"}
    assert {"400", "401", "422", "429", "503"} <= statuses["/rest/v1/auth/login", "post"]
    assert {"401", "503"} <= statuses["/api/me", "get"]


def test_described_errors_match_the_code():
    described_responses = fetch_schema()["components"]["responses"]

    assert described_responses.pop("AnyError")
    for name, response in described_responses.items():
        example = response["content"]["application/json"]["example"]
        assert example["errors"][0]["code"] == getattr(errors, name).code


def test_impossible_operations_are_not_described(alice: User):
    paths = fetch_schema("alice")["paths"]

    def described_methods(table: str) -> list[str]:
        return sorted(paths[f"{BASE_PATH}{table}"].keys() | paths[f"{BASE_PATH}{table}/{{sys_id}}"].keys())

    assert described_methods("sys_property") == ["delete", "get", "patch", "put"]
    assert described_methods("idp_certificate") == ["delete", "get"]
    assert described_methods("sys_deletion_log") == ["get"]
    for table in ("user", "sys_role", "sys_user_role", "sys_db_column", "oidc_setting", "sys_schedule"):
        assert described_methods(table) == sorted(HTTP_METHODS), table


def test_boolean_parameter_lists_accepted_values():
    parameter_schema = fetch_schema()["components"]["parameters"]["display"]["schema"]
    assert sorted(parameter_schema["enum"]) == ["0", "1", "all", "false", "true"]


def test_table_is_described_only_to_permitted_callers(alice: User, bob: User, vault_table: Table):  # B68
    hidden_table = make_table("hidden")
    make_column(hidden_table, "deep")

    assert tables_in(fetch_schema("bob")) == {"vault", "user", "sys_group", "company", "service"}
    assert {"vault", "hidden", "task", "sys_acl"} <= tables_in(fetch_schema("alice"))
    assert "hidden" not in json.dumps(fetch_schema("bob"))


def test_reference_does_not_reveal_a_hidden_table(bob: User, vault_table: Table):  # B68
    hidden_table = make_table("hidden")
    make_column(vault_table, "about", "reference", reference_table=hidden_table)

    text = json.dumps(fetch_schema("bob"))
    assert '"about"' in text and "hidden" not in text.lower()


def test_column_is_described_only_to_permitted_callers(alice: User, bob: User, vault_table: Table):  # B68
    UserRole.objects.create(user=bob, role=Role.objects.get(name="itil"))
    assert "code" in record_schema(fetch_schema("bob"), "vault")

    UserRole.objects.filter(user=bob).delete()
    schema = fetch_schema("bob")
    assert "title" in record_schema(schema, "vault")
    for schema_part in (
        record_schema(schema, "vault"),
        *(body_schema(schema, "vault", kind)["properties"] for kind in BODY_KINDS),
    ):
        assert "code" not in schema_part


BODY_KINDS = ("create", "replace", "write")


def test_password_is_described_only_in_request_bodies(alice: User, vault_table: Table):
    schema = fetch_schema("alice")

    assert "pin" not in record_schema(schema, "vault")
    for kind in BODY_KINDS:
        assert body_schema(schema, "vault", kind)["properties"]["pin"]["writeOnly"] is True


def test_import_id_is_described_to_administrators(alice: User, bob: User, vault_table: Table):
    schema_of_alice, schema_of_bob = fetch_schema("alice"), fetch_schema("bob")
    assert "sys_id" in body_schema(schema_of_alice, "vault", "create")["properties"]
    assert not any(
        "sys_id" in schema["properties"]
        for schema in (body_schema(schema_of_bob, "vault", "create"), body_schema(schema_of_alice, "company", "create"))
    )


def test_restoring_is_described_to_administrators(alice: User, bob: User):
    described_to = [
        login for login in ("alice", "bob", "") if "/rest/v1/restore/{entry}" in fetch_schema(login)["paths"]
    ]
    assert described_to == ["alice"]


def test_column_schema_describes_its_values(bob: User, vault_table: Table):
    schema = fetch_schema("bob")
    columns, create_schema = record_schema(schema, "vault"), body_schema(schema, "vault", "create")

    assert columns["kind"]["enum"] == ["a", "b", None]
    assert columns["opened_on"]["format"] == "date"
    assert columns["sys_id"]["readOnly"] is columns["counter"]["readOnly"] is True
    assert create_schema["required"] == ["title"] and create_schema["properties"]["title"]["maxLength"] == 40
    assert not {"sys_id", "sys_version", "counter"} & set(create_schema["properties"])
    assert body_schema(schema, "vault", "replace")["properties"]["sys_version"]["readOnly"] is True
    assert body_schema(schema, "vault", "replace")["required"] == ["title"]
    assert "required" not in body_schema(schema, "vault", "write")


def test_examples_are_values_that_the_api_accepts(alice: User, as_alice: Client, vault_table: Table):
    schema = fetch_schema("alice")
    properties = body_schema(schema, "vault", "create")["properties"]
    body = {name: column["examples"][0] for name, column in properties.items() if "examples" in column}
    assert body["title"] and body["kind"] == "a" and body["sys_id"] is None
    assert not [name for name, value in body.items() if value == {}]

    headers = {"Authorization": f"Basic {b64encode(f'alice:{PASSWORD}'.encode()).decode()}"}
    response = Client().post("/rest/v1/table/vault", body, "application/json", headers=headers)
    assert response.status_code == 201, response.content
    assert record_schema(schema, "vault")["sys_created_by"]["examples"] == [{"value": "179576012200000053"}]


def test_equal_schemas_are_shared(alice: User, vault_table: Table):
    """The document is loaded as a whole, so it should be small."""
    response = Client().get(
        "/api/schema", headers={"Authorization": f"Basic {b64encode(f'alice:{PASSWORD}'.encode()).decode()}"}
    )
    assert b"\n" not in response.content and b'": ' not in response.content

    schema = response.json()
    time_pattern = schema["components"]["schemas"]["Time"]["pattern"]
    assert response.content.count(json.dumps(time_pattern).encode()) == 2, "one for responses, one for requests"
    replace_content = schema["paths"]["/rest/v1/table/company/{sys_id}"]["put"]["requestBody"]["content"][
        "application/json"
    ]
    assert replace_content["schema"] == {"$ref": "#/components/schemas/table.company.replace"}
    replace_schema = schema["components"]["schemas"]["table.company.replace"]
    assert replace_schema == {"allOf": [{"$ref": "#/components/schemas/table.company.write"}], "required": ["name"]}


def test_only_permitted_operations_are_described(bob: User, vault_table: Table):
    paths = fetch_schema("bob")["paths"]

    assert set(paths["/rest/v1/table/vault"]) == {"get", "post"}
    assert set(paths["/rest/v1/table/vault/{sys_id}"]) == {"get", "put", "patch"}
    assert set(paths["/rest/v1/table/company"]) == {"get"}


def test_create_only_caller_sees_no_read_operation(bob: User):
    box_table = make_table("box")
    make_column(box_table, "wish")
    make_rule(box_table, "create")

    schema = fetch_schema("bob")
    assert set(schema["paths"]["/rest/v1/table/box"]) == {"post"}
    assert "/rest/v1/table/box/{sys_id}" not in schema["paths"]
    assert (
        "wish" in body_schema(schema, "box", "create")["properties"]
        and "table.box" not in schema["components"]["schemas"]
    )


def test_new_column_is_described_immediately(bob: User, vault_table: Table):
    fetch_schema("bob")
    make_column(vault_table, "fresh")

    assert "fresh" in record_schema(fetch_schema("bob"), "vault")
    Column.objects.get(table=vault_table, name="fresh").delete()
    assert "fresh" not in record_schema(fetch_schema("bob"), "vault")


def test_session_gets_the_tables_of_its_user(as_bob: Client, vault_table: Table):
    assert "vault" in tables_in(fetch_schema(client=as_bob))


@pytest.mark.parametrize(
    ("page", "other_page"), [("/api/docs", "/api/docs/reference"), ("/api/docs/reference", "/api/docs")]
)
def test_documentation_pages_link_to_each_other(page: str, other_page: str):
    text = Client().get(page).content.decode()
    assert 'href="/"' in text and f'href="{other_page}"' in text


def test_security_schemes_are_described(alice: User):
    document = fetch_schema("alice")
    session_paths = {
        path
        for path, operations in document["paths"].items()
        for operation in operations.values()
        if any("session" in scheme for scheme in operation.get("security", []))
    }
    assert session_paths and all(path == "/api/me" or path.startswith("/api/collections") for path in session_paths)
    assert "create a key first" in document["info"]["description"]


def test_invalid_credentials_are_refused_not_ignored(bob: User):
    credentials = b64encode(b"bob:wrong").decode()

    assert Client().get("/api/schema", headers={"Authorization": f"Basic {credentials}"}).status_code == 401


def test_schemathesis_loads_every_operation():
    demo_people.create_demo_users(lambda: PASSWORD)
    demo_records.create_demo_records()

    operations = list(schemathesis.openapi.from_dict(fetch_schema("demo.agent")).get_all_operations())
    assert len(operations) > 12 and all(isinstance(operation, schemathesis.core.result.Ok) for operation in operations)
