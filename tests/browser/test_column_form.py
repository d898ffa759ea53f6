"""The form of a column shows the fields of the chosen type."""

import pytest

from tests.browser.visitor import Visitor

pytestmark = pytest.mark.browser

COMMON_FIELDS = {"table", "name", "label", "type", "mandatory", "read_only"}
FIELDS_BY_TYPE = {
    "string": {"is_unique", "is_indexed", "is_display", "default_value", "max_length"},
    "text": {"is_indexed", "default_value", "max_length"},
    "reference": {"reference_table", "is_unique", "is_indexed", "is_display", "default_value"},
    "list": {"reference_table", "is_indexed"},
    "choice": {"is_unique", "is_indexed", "is_display", "default_value", "choices"},
    "json": {"default_value"},
    "password": set(),
}
ALL_FIELDS = COMMON_FIELDS.union(*FIELDS_BY_TYPE.values())


def visible_fields(visitor: Visitor) -> set[str]:
    selectors = {name: "#choices-group" if name == "choices" else f".field-{name}" for name in ALL_FIELDS}
    return {name for name, selector in selectors.items() if visitor.page.locator(selector).first.is_visible()}


def test_fields_depend_on_the_column_type(visitor: Visitor):
    visitor.sign_in("alice")
    visitor.open("/admin/tableapi/column/add/")
    for column_type, fields in FIELDS_BY_TYPE.items():
        visitor.page.select_option("[name=type]", column_type)
        assert visible_fields(visitor) == COMMON_FIELDS | fields, column_type


def test_fields_with_a_value_are_never_hidden(visitor: Visitor):
    visitor.sign_in("alice")
    visitor.open("/admin/tableapi/column/add/")
    visitor.page.fill("[name=max_length]", "40")
    visitor.page.select_option("[name=type]", "integer")
    assert "max_length" in visible_fields(visitor)
    visitor.page.fill("[name=max_length]", "")
    visitor.page.select_option("[name=type]", "boolean")
    assert "max_length" not in visible_fields(visitor)
