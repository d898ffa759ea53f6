"""The Table API in the OpenAPI document: any table for everybody, and beside it the tables that the caller may see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rest_framework.request import Request

from tableapi.access.caller_view import CallerView, caller_view
from tableapi.catalogue.definitions import CREATE, DELETE, NUMBER, WRITE, Column, Table
from tableapi.database import catalogue_loader
from tableapi.query.expressions import NEVER
from tableapi.write import system_records
from tableapi.write.current_record import keeps_ids

from .column_schemas import IMPORTED_ID, Object, read_schema, reference, written_schema
from .components import HEADERS, PARAMETERS, SCHEMAS
from .paths import ANY, BASE, Described, answer_of, paths_of


def without_table_view(endpoints: list[Any]) -> list[Any]:
    """PREPROCESSING_HOOKS: the view knows tables only when it is called; this module describes it."""
    return [endpoint for endpoint in endpoints if not endpoint[0].startswith(BASE)]


def with_tables(result: Object, request: Request | None = None, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: adds the Table API, as this caller may see it."""
    paths = any_table()
    components = result.setdefault("components", {})
    components["parameters"] = PARAMETERS
    components["headers"] = HEADERS
    schemas = dict(SCHEMAS)
    caller: Any = getattr(request, "user", None)
    if caller is not None and caller.is_authenticated:
        seen = caller_view(catalogue_loader.reload_if_changed(), frozenset(caller.role_names))
        own_paths, own_schemas = seen.kept("openapi", lambda: own_tables(seen))
        paths |= own_paths
        schemas |= own_schemas
    result["paths"] = {**result["paths"], **paths}
    components["schemas"] = {**components.get("schemas", {}), **schemas}
    return result


def any_table() -> Object:
    """The paths with the table's name as a parameter: nothing of any table is told."""
    bodies = dict.fromkeys(("post", "put", "patch"), "NewValues")
    every = {"get", "delete", *bodies}
    return paths_of(Described(ANY, "record", reference("schemas", "Records"), bodies), every)


def own_tables(seen: CallerView) -> tuple[Object, Object]:
    """Paths and schemas of every table that is there for the caller, with the columns that are."""
    paths: Object = {}
    schemas: Object = {}
    for table in seen.catalogue.tables.values():
        methods = set(methods_of(seen, table))
        if not methods:
            continue
        name = f"table.{table.name}"
        answer = reference("schemas", "Records")
        if seen.can_read(table):
            schemas[name] = record_schema(seen, table)
            records = [reference("schemas", name), reference("schemas", "Record")]
            schemas[f"{name}.answer"] = answer_of(records)
            answer = reference("schemas", f"{name}.answer")
        bodies = bodies_of(seen, table, methods)
        schemas |= {f"{name}.{kind}": schema for kind, schema in bodies.items()}
        kinds = {"post": "create", "put": "replace" if "replace" in bodies else "write", "patch": "write"}
        named = {method: f"{name}.{kind}" for method, kind in kinds.items() if method in methods}
        paths |= paths_of(Described(table.name, table.label, answer, named), methods)
    return paths, schemas


def bodies_of(seen: CallerView, table: Table, methods: set[str]) -> Object:
    """The body of each kind of write. Replacing takes what changing does, and may need some of it."""
    found: Object = {}
    if "post" in methods:
        found["create"] = body_schema(seen, table, CREATE)
        if keeps_ids(seen, table):
            found["create"]["properties"]["sys_id"] = IMPORTED_ID
        if needed := needed_of(table, found["create"]):
            found["create"]["required"] = needed
    if "put" in methods:
        found["write"] = body_schema(seen, table, WRITE)
        if needed := needed_of(table, found["write"]):
            found["replace"] = {"allOf": [reference("schemas", f"table.{table.name}.write")], "required": needed}
    return found


def methods_of(seen: CallerView, table: Table) -> Iterator[str]:
    """What the caller may do, by the rules' roles; whether a condition holds, the request will tell. Left out is what
    nobody can do: of some of the product's own tables the server alone makes or writes records."""
    can_read = seen.can_read(table)
    is_written = not (table.is_system and all(is_kept_by_server(table, each) for each in table.columns.values()))
    is_made = not table.is_system or system_records.can_be_sent(table)
    if can_read:
        yield "get"
    if is_made and seen.rights.records(CREATE, table) != NEVER:
        yield "post"
    if is_written and can_read and seen.rights.records(WRITE, table) != NEVER:
        yield from ("put", "patch")
    if can_read and seen.rights.records(DELETE, table) != NEVER:
        yield "delete"


def record_schema(seen: CallerView, table: Table) -> Object:
    """The fields that the caller may see in some record, as stored values."""
    columns = [found[0] for name in table.columns if (found := seen.column(table, name)) is not None]
    properties = {column.name: read_schema(column, target_of(seen, column)) for column in columns}
    for column in columns:
        if is_kept_by_server(table, column):
            properties[column.name]["readOnly"] = True
    return {"type": "object", "title": table.label, "properties": properties}


def body_schema(seen: CallerView, table: Table, operation: str) -> Object:
    """The columns that the caller may send; read-only ones only come along when a record is sent back."""
    properties: Object = {}
    for column in table.columns.values():
        if not seen.rights.is_known(table, column):
            continue
        if is_kept_by_server(table, column):
            if operation == WRITE and seen.column(table, column.name) is not None:
                properties[column.name] = read_schema(column, target_of(seen, column)) | {"readOnly": True}
        elif seen.rights.column(operation, table, column) != NEVER:
            properties[column.name] = written_schema(column, target_of(seen, column))
    return {"type": "object", "properties": properties, "additionalProperties": False}


def needed_of(table: Table, body: Object) -> list[str]:
    columns = (table.columns[name] for name in body["properties"])
    return [each.name for each in columns if each.mandatory and not each.default and not is_kept_by_server(table, each)]


def is_kept_by_server(table: Table, column: Column) -> bool:
    return column.is_sys or column.read_only or (column.name == NUMBER and bool(table.number_prefix))


def target_of(seen: CallerView, column: Column) -> str:
    """What a reference refers to, if that is there for the caller."""
    found = seen.table(column.reference) if column.reference else None
    return found.label if found is not None else ""
