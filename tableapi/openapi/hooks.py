"""Adds the Table API to the OpenAPI document: paths for any table, and for each table that the caller can see."""

from collections.abc import Iterator, Mapping
from typing import Any

from rest_framework.request import Request

from accounts.roles import ADMIN
from system.openapi import Object, array_of, reference
from tableapi.access.caller_view import CallerView, view_for
from tableapi.catalogue.definitions import CREATE, DELETE, WRITE, Column, Table
from tableapi.database import catalogue_loader
from tableapi.query.expressions import NEVER
from tableapi.write import product_records
from tableapi.write.current_record import may_import_ids

from .column_schemas import IMPORTED_ID_SCHEMA, request_schema, response_schema
from .components import PARAMETERS, RESPONSE_HEADERS
from .operations import TABLE_NAME, paths_of
from .paths import ADMIN_PATHS, OPERATIONS, PATH_PREFIXES, TableDescription, table_paths
from .schemas import SCHEMAS, envelope_of


def remove_table_views(endpoints: list[Any]) -> list[Any]:
    """PREPROCESSING_HOOKS: removes the views, because their tables are known only when they are called."""
    return [endpoint for endpoint in endpoints if not endpoint[0].startswith(PATH_PREFIXES)]


def add_tables(result: Object, request: Request | None = None, **_: Any) -> Object:
    """POSTPROCESSING_HOOKS: adds the Table API as this caller sees it."""
    paths = describe_any_table()
    components = result.setdefault("components", {})
    components |= {"parameters": PARAMETERS, "headers": RESPONSE_HEADERS}
    schemas = dict(SCHEMAS)
    user: Any = getattr(request, "user", None)
    if user is not None and user.is_authenticated:
        view = view_for(catalogue_loader.reload_if_changed(), frozenset(user.role_names))
        visible_paths, visible_schemas, tag_groups = view.cached("openapi", lambda: describe_visible_tables(view))
        paths |= visible_paths
        schemas |= visible_schemas
        add_tags(result, tag_groups)
    if ADMIN not in getattr(user, "role_names", ()):
        for path in ADMIN_PATHS:
            del paths[path]
    result["paths"] = {**result["paths"], **paths}
    components["schemas"] = {**components.get("schemas", {}), **schemas}
    return result


def describe_any_table() -> Object:
    """Return the paths with the table name as a parameter, which reveal no tables."""
    bodies = dict.fromkeys(("post", "put", "patch"), "NewValues")
    any_table = TableDescription(TABLE_NAME, "record", reference("schemas", "Records"), bodies)
    return table_paths(any_table, {"get", "delete", *bodies}) | paths_of(OPERATIONS)


def add_tags(result: Object, tag_groups: Mapping[str, list[Object]]) -> None:
    """Add a tag for each table. Swagger UI shows tags in this order, and ReDoc shows the groups."""
    general_tags = result.get("tags", [])
    groups = {"General": general_tags, **{title: tags for title, tags in tag_groups.items() if tags}}
    result["tags"] = [tag for tags in groups.values() for tag in tags]
    result["x-tagGroups"] = [{"name": title, "tags": [tag["name"] for tag in tags]} for title, tags in groups.items()]


def describe_visible_tables(view: CallerView) -> tuple[Object, Object, dict[str, list[Object]]]:
    """Return paths and schemas of every table that the caller can see, with the visible columns, and the tags."""
    paths: Object = {}
    schemas: Object = {}
    tag_groups: dict[str, list[Object]] = {"Tables": [], "Product tables": []}
    for table in sorted(view.catalogue.tables.values(), key=lambda table: (table.is_system, table.name)):
        methods = set(allowed_methods(view, table)) if view.table(table.name) else set()
        if not methods:
            continue
        name = f"table.{table.name}"
        response = reference("schemas", "Records")
        if view.can_read(table):
            schemas[name] = record_schema(view, table)
            records = [reference("schemas", name), reference("schemas", "Record")]
            schemas[f"{name}.answer"] = envelope_of(array_of({"anyOf": records}))
            response = reference("schemas", f"{name}.answer")
        bodies = body_schemas(view, table, methods)
        schemas |= {f"{name}.{kind}": schema for kind, schema in bodies.items()}
        kinds = {"post": "create", "put": "replace" if "replace" in bodies else "write", "patch": "write"}
        body_schema_names = {method: f"{name}.{kind}" for method, kind in kinds.items() if method in methods}
        kind = "Product table" if table.is_system else "Table"
        tag = f"{kind} {table.name}"
        tag_groups[f"{kind}s"].append({"name": tag, "description": table.label})
        paths |= table_paths(TableDescription(table.name, table.label, response, body_schema_names, tag), methods)
    return paths, schemas, tag_groups


def body_schemas(view: CallerView, table: Table, methods: set[str]) -> Object:
    """Return the body schema of each kind of write. A replacement has the columns of an update, some required."""
    schemas: Object = {}
    if "post" in methods:
        schemas["create"] = body_schema(view, table, CREATE)
        if may_import_ids(view, table):
            schemas["create"]["properties"]["sys_id"] = IMPORTED_ID_SCHEMA
        if required := required_columns(table, schemas["create"]):
            schemas["create"]["required"] = required
    if "put" in methods:
        schemas["write"] = body_schema(view, table, WRITE)
        if required := required_columns(table, schemas["write"]):
            schemas["replace"] = {"allOf": [reference("schemas", f"table.{table.name}.write")], "required": required}
    return schemas


def allowed_methods(view: CallerView, table: Table) -> Iterator[str]:
    """Yield the methods that the roles of the rules allow; conditions depend on the record. Omits methods
    that only the server may use on the records of some product tables."""
    can_read = view.can_read(table)
    is_writable = not (table.is_system and all(map(table.is_server_managed, table.columns.values())))
    is_creatable = not table.is_system or product_records.can_be_created_by_clients(table)
    if can_read:
        yield "get"
    if is_creatable and view.permissions.record_decision(CREATE, table) != NEVER:
        yield "post"
    if is_writable and can_read and view.permissions.record_decision(WRITE, table) != NEVER:
        yield from ("put", "patch")
    if can_read and view.permissions.record_decision(DELETE, table) != NEVER:
        yield "delete"


def record_schema(view: CallerView, table: Table) -> Object:
    """Return the schema of the fields that the caller can see in at least one record, as stored values."""
    columns = [
        column_and_guard[0] for name in table.columns if (column_and_guard := view.column(table, name)) is not None
    ]
    properties = {column.name: response_schema(column, target_label(view, column)) for column in columns}
    for column in columns:
        if table.is_server_managed(column):
            properties[column.name]["readOnly"] = True
    return {"type": "object", "title": table.label, "properties": properties}


def body_schema(view: CallerView, table: Table, operation: str) -> Object:
    """Return the schema of the columns that the caller can send. Read-only columns can be sent back unchanged."""
    properties: Object = {}
    for column in table.columns.values():
        if not view.permissions.can_see_column(table, column):
            continue
        if table.is_server_managed(column):
            if operation == WRITE and view.column(table, column.name) is not None:
                properties[column.name] = response_schema(column, target_label(view, column)) | {"readOnly": True}
        elif view.permissions.column_decision(operation, table, column) != NEVER:
            properties[column.name] = request_schema(column, target_label(view, column))
    return {"type": "object", "properties": properties, "additionalProperties": False}


def required_columns(table: Table, body: Object) -> list[str]:
    columns = (table.columns[name] for name in body["properties"])
    return [
        column.name
        for column in columns
        if column.mandatory and not column.default and not table.is_server_managed(column)
    ]


def target_label(view: CallerView, column: Column) -> str:
    """Return the label of the referenced table if the caller can see it, else an empty string."""
    target = view.table(column.reference) if column.reference else None
    return target.label if target is not None else ""
