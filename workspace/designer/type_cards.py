"""The cards of the column types: an example value and what the type is for. Pure."""

from typing import NamedTuple

from tableapi.catalogue.column_types import COLUMN_TYPES, type_names_where


class TypeCard(NamedTuple):
    name: str
    label: str
    example: str
    description: str


EXAMPLES = {
    "string": ('Laptop 14"', "One line of text"),
    "text": ("Stands in room 114, second shelf.", "Several lines of text"),
    "wysiwyg": ("First bold, then a list", "Text with headings, lists and links"),
    "url": ("https://example.com", "A link that opens"),
    "email": ("anna@example.com", "An address of one person"),
    "integer": ("42", "A whole number"),
    "duration": ("1d 2h 30m", "An amount of time"),
    "decimal": ("1299.90", "An exact number, such as an amount of money"),
    "percent": ("75 %", "From 0 to 100"),
    "boolean": ("Yes", "Yes, no or not answered"),
    "datetime": ("9 May 2024, 14:30", "A moment, shown in each person's time zone"),
    "date": ("9 May 2024", "A day, the same for everyone"),
    "choice": ("In use", "One value of a list that you define"),
    "reference": ("Anna Example", "One record of another table"),
    "list": ("Anna, Bob", "Several records of another table"),
    "json": ('{"ports": 4}', "Structured data for programs"),
    "password": ("••••••", "Can be checked but never read"),
    "secret": ("••••••", "Encrypted; programs of the product can read it"),
}
TYPE_CARDS = {name: TypeCard(name, row.label, *EXAMPLES[name]) for name, row in COLUMN_TYPES.items()}
# The controls that only some types use, with these types; a script hides them for other types.
TYPES_BY_CONTROL = {
    "reference_table": type_names_where(lambda row: row.has_target),
    "is_unique": type_names_where(lambda row: row.can_be_unique),
    "is_indexed": type_names_where(lambda row: row.can_be_indexed),
    "is_display": type_names_where(lambda row: row.can_be_display),
    "default_value": type_names_where(lambda row: row.has_default),
    "max_length": type_names_where(lambda row: row.has_max_length),
    "choices": type_names_where(lambda row: row.has_choices),
    "converted_from_text": type_names_where(lambda row: row.is_html),
}
