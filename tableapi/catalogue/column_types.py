"""The column types, one row for each. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from system.encoded_query import ComparisonKind

from . import display_formats, value_readers
from .column_type import ColumnType, JsonSchema, StorageFormat

# An indexed text must fit in an index page, whatever its characters, and its words in a tsvector.
MAX_INDEXED_LENGTH = 600
DEFAULT_INDEXED_LENGTH = 255
MAX_SEARCHED_LENGTH = 100_000


def _nullable(json_type: str, **more: Any) -> JsonSchema:
    return {"type": [json_type, "null"], **more}


def _schema_reference(name: str) -> JsonSchema:
    """A schema of `openapi.column_schemas.VALUE_SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def _schema_or_null(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def _is_same_second(first: datetime, second: datetime) -> bool:
    return first.astimezone(UTC).replace(microsecond=0) == second.astimezone(UTC).replace(microsecond=0)


def _is_same_json(first: Any, second: Any) -> bool:
    """Compare as JSON does: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(_is_same_json(first[key], second[key]) for key in first)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_is_same_json, first, second))
    return bool(first == second)


_EMPTY_IS_NULL = "nullif({}, '')"

_STRING = ColumnType(
    name="string",
    label="String",
    sql_type="text",
    read=value_readers.read_text,
    empty_text_clears=False,
    compare_as=ComparisonKind.TEXT,
    value_sql=_EMPTY_IS_NULL,
    schema=_nullable("string"),
    length_limits=(DEFAULT_INDEXED_LENGTH, MAX_INDEXED_LENGTH),
    convertible_types=frozenset({"text", "wysiwyg"}),
    model_fields=("CharField",),
)
_TEXT = replace(
    _STRING,
    name="text",
    label="Text",
    has_main_index=False,
    can_be_unique=False,
    length_limits=(MAX_SEARCHED_LENGTH, MAX_SEARCHED_LENGTH),
    convertible_types=frozenset({"string", "wysiwyg"}),
    model_fields=("TextField",),
)
_PASSWORD = ColumnType(
    name="password",
    label="Password (hashed)",
    sql_type="text",
    storage=StorageFormat.HASHED,
    read=value_readers.read_secret,
    empty_text_clears=False,
    compare_as=ComparisonKind.NEVER,
    is_same=lambda *_: False,  # hashes cannot be compared; encrypting a text again gives another result
    is_sortable=False,
    schema=_nullable("string", minLength=1, format="password", writeOnly=True),
    has_main_index=False,
    can_be_unique=False,
    has_default=False,
)

_ROWS = (
    _STRING,
    _TEXT,
    replace(
        _TEXT,
        name="wysiwyg",
        label="Formatted text",
        storage=StorageFormat.HTML,
        read=value_readers.read_formatted_text,
        example="<p>Formatted text</p>",
        convertible_types=frozenset(),
        model_fields=(),
    ),
    ColumnType(
        name="url",
        label="URL",
        sql_type="text",
        read=value_readers.read_url,
        compare_as=ComparisonKind.TEXT,
        value_sql=_EMPTY_IS_NULL,
        schema=_nullable("string", format="uri"),
        example="https://example.com/",
        length_limits=(DEFAULT_INDEXED_LENGTH, MAX_INDEXED_LENGTH),
    ),
    ColumnType(
        name="email",
        label="Email address",
        sql_type="text",
        read=value_readers.read_email,
        compare_as=ComparisonKind.TEXT,
        value_sql=_EMPTY_IS_NULL,
        schema=_nullable("string", format="email"),
        example="jane.doe@example.com",
        length_limits=(value_readers.MAX_EMAIL_LENGTH, MAX_INDEXED_LENGTH),
    ),
    ColumnType(
        name="integer",
        label="Integer",
        sql_type="bigint",
        read=value_readers.read_integer,
        compare_as=ComparisonKind.INTEGER,
        json_sql="({})::text",  # measured: costs less than to_json
        schema=_nullable("integer", format="int64"),
        example=10,
        model_fields=("IntegerField",),
    ),
    ColumnType(
        name="duration",
        label="Duration",
        sql_type="bigint",
        read=value_readers.read_duration,
        compare_as=ComparisonKind.INTEGER,
        display_format=display_formats.DURATION,
        schema=_nullable("integer", format="int64", minimum=0, description="In seconds."),
        example=3600,
    ),
    ColumnType(
        name="decimal",
        label="Decimal",
        sql_type="numeric",
        read=value_readers.read_decimal,
        compare_as=ComparisonKind.DECIMAL,
        schema=_nullable("number"),
        example=9.95,
        model_fields=("DecimalField", "FloatField"),
    ),
    ColumnType(
        name="percent",
        label="Percent",
        sql_type="numeric",
        read=value_readers.read_percent,
        compare_as=ComparisonKind.DECIMAL,
        display_format=display_formats.PERCENT,
        schema=_nullable("number", minimum=0, maximum=100),
        example=50,
    ),
    ColumnType(
        name="boolean",
        label="Yes or no",
        sql_type="boolean",
        read=value_readers.read_boolean,
        compare_as=ComparisonKind.BOOLEAN,
        json_sql="({})::text",
        display_format=display_formats.BOOLEAN,
        schema=_nullable("boolean"),
        example=True,
        can_be_unique=False,
        model_fields=("BooleanField",),
    ),
    ColumnType(
        name="datetime",
        label="Date and time",
        sql_type="timestamptz",
        read=value_readers.read_time,
        compare_as=ComparisonKind.DATETIME,
        is_same=_is_same_second,
        # As text, a time starts with `YYYY-MM-DD HH:MM:SS`: `config.database.connections` sets ISO and UTC. Measured:
        # to_char takes 50% longer.
        value_sql="left(({})::text, 19)",
        json_sql="'\"' || {} || '\"'",  # nothing to escape
        display_format=display_formats.DATETIME,
        schema=_schema_or_null(_schema_reference("Time")),
        request_schema=_schema_or_null(_schema_reference("TimeInput")),
        example="2024-05-19 13:45:00",
        model_fields=("DateTimeField",),
    ),
    ColumnType(
        name="date",
        label="Date",
        sql_type="date",
        read=value_readers.read_date,
        compare_as=ComparisonKind.DATE,
        display_format=display_formats.DATE,
        schema=_nullable("string", format="date"),
        request_schema=_schema_or_null(_schema_reference("DateInput")),
        example="2024-05-19",
        model_fields=("DateField",),
    ),
    ColumnType(
        name="choice",
        label="Choice",
        sql_type="text",
        column_sql='text COLLATE "C"',
        read=value_readers.read_choice,
        compare_as=ComparisonKind.CHOICE,
        value_sql=_EMPTY_IS_NULL,
        schema=_nullable("string"),
        has_choices=True,
    ),
    ColumnType(
        name="reference",
        label="Reference",
        sql_type="varchar",
        column_sql='varchar(32) COLLATE "C"',
        is_reference=True,
        read=value_readers.read_reference,
        compare_as=ComparisonKind.REFERENCE,
        schema=_schema_or_null(_schema_reference("Reference")),
    ),
    ColumnType(
        name="list",
        label="List of references",
        sql_type="varchar[]",
        column_sql='varchar(32)[] COLLATE "C"',
        is_list=True,
        read=value_readers.read_references,
        compare_as=ComparisonKind.LIST,
        is_sortable=False,
        schema=_schema_or_null({"type": "array", "items": _schema_reference("Reference")}),
        can_be_unique=False,
        has_default=False,
    ),
    ColumnType(
        name="json",
        label="JSON",
        sql_type="jsonb",
        storage=StorageFormat.JSON,
        read=value_readers.read_json_value,
        empty_text_clears=False,
        compare_as=ComparisonKind.JSON,
        is_same=_is_same_json,
        is_sortable=False,
        schema={},
        example={"key": "value"},
        has_main_index=False,
        can_be_unique=False,
        model_fields=("JSONField",),
    ),
    _PASSWORD,
    replace(_PASSWORD, name="secret", label="Secret (encrypted)", storage=StorageFormat.ENCRYPTED),
)

COLUMN_TYPES: Mapping[str, ColumnType] = MappingProxyType({row.name: row for row in _ROWS})


def type_names_where(predicate: Callable[[ColumnType], bool]) -> list[str]:
    """The names of the types that match the predicate, for use in a query or form."""
    return [row.name for row in _ROWS if predicate(row)]


def choices() -> Iterator[tuple[str, str]]:
    """The choices of a column's type. Migrations refer to this function, so a new type needs no migration."""
    return ((row.name, row.label) for row in COLUMN_TYPES.values())
