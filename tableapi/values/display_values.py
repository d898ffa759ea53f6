"""Converts display values in a body to stored values; `output_fields.display_value_sql` does the reverse. Pure."""

from typing import Any

from system.errors import InvalidInput
from tableapi.catalogue.definitions import Column
from tableapi.catalogue.display_formats import value_with_label
from tableapi.catalogue.value_readers import invalid_choice_message


def parse_display_value(column: Column, value: Any) -> Any:
    """Convert a display value to input of `column_values.parse`. `write.payload` resolves the names of references."""
    if value is None or value == "":
        return value
    if column.column_type.has_choices:
        choice = value_with_label(value, [(label, stored_value) for stored_value, label in column.choices])
        if choice is None:
            raise InvalidInput(invalid_choice_message([label for _, label in column.choices]), field=column.name)
        return choice
    display_format = column.column_type.display_format
    return display_format.parse(value) if display_format else value


def stored_texts(column: Column, display_value: str) -> list[str]:
    """Return the stored values with this display value, as PostgreSQL formats them."""
    if column.column_type.has_choices:
        # A value that is no longer a choice is displayed as it is.
        values_with_label = [value for value, label in column.choices if label == display_value]
        return values_with_label + ([display_value] if display_value not in dict(column.choices) else [])
    display_format = column.column_type.display_format
    return display_format.stored_texts(display_value) if display_format else [display_value]
