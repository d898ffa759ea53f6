"""The form of a column shows the fields of the chosen type."""

import pytest

from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

ALWAYS = {"table", "name", "label", "type", "mandatory", "read_only"}
SHOWN = {
    "string": {"is_unique", "is_indexed", "is_display", "default_value", "max_length"},
    "text": {"is_indexed", "default_value", "max_length"},
    "reference": {"reference_table", "is_unique", "is_indexed", "is_display"},
    "list": {"reference_table", "is_indexed"},
    "choice": {"is_unique", "is_indexed", "is_display", "default_value", "choices"},
    "json": {"default_value"},
    "password": set(),
}
FIELDS = [*ALWAYS, "reference_table", "is_unique", "is_indexed", "is_display", "default_value", "max_length", "choices"]


def seen(visitor: Visitor) -> set[str]:
    places = {name: "#choices-group" if name == "choices" else f".field-{name}" for name in FIELDS}
    return {name for name, place in places.items() if visitor.page.locator(place).first.is_visible()}


def test_fields_depend_on_the_column_type(visitor: Visitor):
    visitor.sign_in("alice")
    visitor.open("/admin/tableapi/column/add/")
    for kind, fields in SHOWN.items():
        visitor.page.select_option("[name=type]", kind)
        assert seen(visitor) == ALWAYS | fields, kind


def test_fields_with_a_value_are_never_hidden(visitor: Visitor):
    visitor.sign_in("alice")
    visitor.open("/admin/tableapi/column/add/")
    visitor.page.fill("[name=max_length]", "40")
    visitor.page.select_option("[name=type]", "integer")
    assert "max_length" in seen(visitor)
    visitor.page.fill("[name=max_length]", "")
    visitor.page.select_option("[name=type]", "boolean")
    assert "max_length" not in seen(visitor)
