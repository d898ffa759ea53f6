"""Helper functions that create tables, rules and records, and call the Table API as clients do.

Calls, each with real credentials and no cookies (`api` keeps no state between requests):

    api(bob).get("device", query="name=Lamp", fields="name,maker.name")   GET /rest/v1/table/device?sysparm_query=…
    api(bob).get("device?sysparm_limit=1&unknown=2")                      a literal query string
    api(bob).get(f"device/{lamp}", headers={"If-None-Match": tag})
    api(bob).post("device", {"name": "Lamp"}, display_value=1)            a body that is not text or bytes becomes JSON
    api(bob).put(path, body), .patch(path, body), .delete(path), .head(path), .send("TRACE", path, body)
    api(bob, credential="key"), api(bob, scope=["auditor"])               Bearer instead of Basic; a key for some roles
    api(None)                                                             an anonymous caller

    data_of(response)               the records of a response; fails if it is an error
    column_values(response, "name") one column of them
    error_of(response)              (status, code, field) of an error
    errors_of(response)             the same for each error of a response
    next_page_url(response)         the URL of the next page
    values_of_all_pages(api(bob), "device", "name", limit=2)   the values of a column on all pages

Definitions, which change the database as well. Tables can be given by name:

    table("device"), table("laptop", parent="device")                     as designs.make_table
    field("device", "price", "decimal", is_indexed=True)                  as designs.make_column
    field("device", "state", choices={"1": "New"})                        a choice column
    field("device", "maker", target="company")                            a reference
    field("device", "owners", "list", target="user")                      a list of references
    role("auditor", contains=["reader"]); grant(bob, "auditor")           a missing role is created
    group("Helpers", bob)
    rule("read", "device"), rule("read", None), rule("read", "device", "price", roles=["auditor"]),
    rule("write", "device", condition="state=1", admin_overrides=False, active=False)
    open_table("device")                                                  everybody may access its records
    view("device", "short", "name", "maker.name")
    record("device", name="Lamp")                                         returns its sys_id; bypasses API and rules;
                                                                          works for child tables, too
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.db import connection
from django.test import Client
from psycopg.types.json import Jsonb

from accounts.authentication import access_keys
from accounts.models import Group, Role, User, UserGroup, UserRole
from tableapi.catalogue import html
from tableapi.database import catalogue_loader
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, Table, View, ViewColumn
from tests.support.users import PASSWORD
from tests.tableapi import designs

BASE_PATH = "/rest/v1/table/"


class ApiClient:
    """Sends requests of one caller, without cookies."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = dict(headers)

    def send(self, method: str, path: str, body: Any = None, headers: Any = None, **params: Any) -> Any:
        """Pass `params` without the prefix `sysparm_`. A path that begins with / is used unchanged."""
        query = urlencode({f"sysparm_{name}": str(value) for name, value in params.items()})
        url = path if path.startswith("/") else BASE_PATH + path
        if query:
            url += ("&" if "?" in url else "?") + query
        content = body if isinstance(body, str | bytes) else json.dumps(body) if body is not None else ""
        content_type = "application/json" if method in ("POST", "PUT", "PATCH") else ""
        request_headers = {**self.headers, **(headers or {})}
        content_type = request_headers.pop("Content-Type", content_type)
        return Client().generic(method, url, content, content_type=content_type, headers=request_headers)

    def get(self, path: str, *, headers: Any = None, **params: Any) -> Any:
        return self.send("GET", path, headers=headers, **params)

    def head(self, path: str, *, headers: Any = None, **params: Any) -> Any:
        return self.send("HEAD", path, headers=headers, **params)

    def post(self, path: str, body: Any = None, *, headers: Any = None, **params: Any) -> Any:
        return self.send("POST", path, body, headers, **params)

    def put(self, path: str, body: Any = None, *, headers: Any = None, **params: Any) -> Any:
        return self.send("PUT", path, body, headers, **params)

    def patch(self, path: str, body: Any = None, *, headers: Any = None, **params: Any) -> Any:
        return self.send("PATCH", path, body, headers, **params)

    def delete(self, path: str, *, headers: Any = None, **params: Any) -> Any:
        return self.send("DELETE", path, headers=headers, **params)


def api(user: User | None, *, credential: str = "password", scope: Iterable[str] = ()) -> ApiClient:
    """A client with Basic credentials, or with a new access key."""
    if user is None:
        return ApiClient({})
    scope_ids = list(Role.objects.filter(name__in=list(scope)).values_list("sys_id", flat=True))
    if credential == "key" or scope_ids:
        key = access_keys.create_key(user, "of a test", expires_at=None, scope=scope_ids)
        return ApiClient({"Authorization": f"Bearer {key}"})
    credentials = base64.b64encode(f"{user.login}:{PASSWORD}".encode()).decode()
    return ApiClient({"Authorization": f"Basic {credentials}"})


def data_of(response: Any) -> Any:
    assert response.status_code in (200, 201), (response.status_code, response.content)
    body = response.json()
    assert body["status"] == "OK"
    return body["data"]


def column_values(response: Any, column: str) -> list[Any]:
    return [record[column] for record in data_of(response)]


def error_of(response: Any) -> tuple[int, str, str | None]:
    (error,) = errors_of(response)
    return error


def errors_of(response: Any) -> list[tuple[int, str, str | None]]:
    body = response.json()
    assert body["status"] == "ERROR" and body["error_type"] == "SERVER", body
    assert all(error["message"] for error in body["errors"])
    return [(response.status_code, error["code"], error.get("field")) for error in body["errors"]]


def next_page_url(response: Any) -> str:
    link = response["Link"]
    assert link.startswith("<") and link.endswith('>; rel="next"')
    return str(link[1:].partition(">")[0])


def values_of_all_pages(caller: ApiClient, path: str, column: str, **params: Any) -> Iterator[Any]:
    """The values of a column on all pages, which are read by following the links."""
    response = caller.get(path, **params)
    while True:
        yield from column_values(response, column)
        if "Link" not in response:
            return
        next_url = urlsplit(next_page_url(response))
        response = caller.get(f"{next_url.path}?{next_url.query}")


def table(name: str, parent: str | Table | None = None, **attributes: Any) -> Table:
    return designs.make_table(name, _find_table(parent) if parent else None, **attributes)


def field(
    table: str | Table,
    name: str,
    type_name: str = "",
    *,
    target: Any = None,
    choices: Any = None,
    **attributes: Any,
) -> Column:
    if target is not None:
        attributes["reference_table"] = _find_table(target)
    column_type = type_name or ("reference" if target is not None else "choice" if choices else "string")
    column = designs.make_column(_find_table(table), name, column_type, **attributes)
    for position, (value, label) in enumerate((choices or {}).items(), 1):
        saving.save_choice(Choice(column=column, value=value, label=label, position=position))
    return column


def _find_table(table: str | Table) -> Table:
    return Table.objects.get(name=table) if isinstance(table, str) else table


def role(name: str, contains: Iterable[str] = ()) -> Role:
    """The role of this name, created if missing."""
    role_record = Role.objects.filter(name=name).first() or Role(name=name)
    if contains:
        role_record.contains = [role(contained_name).pk for contained_name in contains]
    role_record.save()
    return role_record


def grant(user: User, *names: str) -> User:
    for name in names:
        UserRole.objects.create(user=user, role=Role.objects.filter(name=name).first() or role(name))
    return user


def group(name: str, *members: User) -> Group:
    group = Group.objects.create(name=name)
    for user in members:
        UserGroup.objects.create(user=user, group=group)
    return group


def rule(
    operation: str, table: str | Table | None, column: str = "", roles: Iterable[str] = (), condition: str = "",
    **attributes: Any,
) -> Rule:  # fmt: skip
    role_ids = [(Role.objects.filter(name=name).first() or role(name)).pk for name in roles]
    rule = Rule(
        operation=operation,
        table=_find_table(table) if table is not None else None,
        column_name=column,
        roles=role_ids,
        condition=condition,
        **attributes,
    )
    saving.save_rule(rule)
    return rule


def device_of_technicians() -> Table:
    """A table whose records everybody may read, and only users with the role `itil` may change."""
    device = table("device")
    field("device", "name")
    rule("read", "device")
    rule("write", "device", roles=["itil"])
    return device


def open_table(table: str | Table) -> None:
    for operation in ("create", "read", "write", "delete"):
        rule(operation, table)


def view(table: str | Table, name: str, *paths: str) -> View:
    view = View(table=_find_table(table), name=name)
    saving.save_view(view)
    for position, path in enumerate(paths, 1):
        saving.save_view_column(ViewColumn(view=view, path=path, position=position))
    return view


def record(table_name: str, /, **values: Any) -> str:
    """Inserts a record into its table and all parent tables; returns its sys_id."""
    table_definition = catalogue_loader.reload_if_changed().tables[table_name]
    sys_id = values.pop("sys_id", None)
    for owner in reversed(table_definition.lineage):
        own_values: dict[str, Any] = {"sys_id": sys_id} if sys_id else {}
        if owner == table_definition.lineage[-1]:
            own_values["sys_db_table_id"] = table_definition.id
        for name in [name for name in values if table_definition.columns[name].owner == owner]:
            own_values |= _stored_values(table_definition.columns[name], values.pop(name))
        sys_id = _insert(owner, own_values)
    assert not values, f"{table_name} has no column {', '.join(values)}"
    assert sys_id is not None
    return sys_id


def _stored_values(column: Any, value: Any) -> dict[str, Any]:
    stored_values = {column.database_name: Jsonb(value) if column.type == "json" and value is not None else value}
    if column.type == "wysiwyg":
        stored_values[column.plain_text_name] = None if value is None else html.extract_plain_text(value)
    return stored_values


def _insert(table: str, values: dict[str, Any]) -> str:
    names = ", ".join(f'"{name}"' for name in values)
    placeholders = ", ".join(["%s"] * len(values))
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO records."{table}" ({names}) VALUES ({placeholders}) RETURNING sys_id', list(values.values())
        )
        (sys_id,) = cursor.fetchone()
    return str(sys_id)
