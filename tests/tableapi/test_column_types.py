"""Each column type through the Table API, the administration and the documentation; examples in `column_types`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from accounts.models import User
from tableapi.catalogue.column_types import COLUMN_TYPES
from tableapi.ddl import physical_names
from tableapi.design import saving
from tableapi.models import Column
from tests.tableapi.column_types import COMPARISONS, EXAMPLE_IDS, EXAMPLES, TypeExample
from tests.tableapi.designs import indexes_of
from tests.tableapi.oracle.column_types import TYPE_ROWS
from tests.tableapi.test_designer import refusal_of
from tests.tableapi.world import ApiClient, api, column_values, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db
REFERENCE_DOCS = Path(__file__).parents[2] / "docs" / "reference"
REFERENCE_TYPES = ("reference", "list")
WRITE_ONLY_TYPES = ("password", "secret")
READABLE_TYPES = sorted(EXAMPLES.keys() - {*REFERENCE_TYPES, *WRITE_ONLY_TYPES})


@pytest.fixture
def example(request: pytest.FixtureRequest, bob: User) -> TypeExample:
    """Creates a table `thing` that is open to everybody, with a column `it` of the type."""
    type_name = request.param
    table("thing")
    if type_name in REFERENCE_TYPES:
        table("target")
        open_table("target")
        for sys_id in EXAMPLE_IDS:
            record("target", sys_id=sys_id)
    choice_labels = {"1": "New", "2": "Done"} if type_name == "choice" else None
    field("thing", "it", type_name, target="target" if type_name in REFERENCE_TYPES else None, choices=choice_labels)
    open_table("thing")
    return EXAMPLES[type_name]


@pytest.fixture
def caller(bob: User) -> ApiClient:
    return api(bob)


def parametrize_types(type_names: Any) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("example", type_names, indirect=True)


def create_records(caller: ApiClient, values: Any, **params: Any) -> list[str]:
    return [column_values(caller.post("thing", {"it": value}, **params), "sys_id")[0] for value in values]


def returned_value(caller: ApiClient, sys_id: str, **params: Any) -> Any:
    (value,) = column_values(caller.get(f"thing/{sys_id}", fields="it", exclude_reference_link="1", **params), "it")
    return value


def test_every_type_has_an_example() -> None:
    assert EXAMPLES.keys() == COLUMN_TYPES.keys()


def test_every_type_is_documented() -> None:
    section = (
        (REFERENCE_DOCS / "table-api.md").read_text(encoding="utf-8").partition("\n## Values")[2].partition("\n## ")[0]
    )
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("|")]
    assert COLUMN_TYPES.keys() <= {name.strip() for cell in cells for name in cell.split(",")}


@pytest.mark.parametrize(("plural", "family"), [("texts", "text"), ("numbers", "number"), ("dates", "time")])
def test_query_documentation_names_the_types_of_a_family(plural: str, family: str) -> None:
    page = (REFERENCE_DOCS / "encoded-queries.md").read_text(encoding="utf-8")
    (type_list,) = re.findall(rf'"{plural}" are\s([^;.]*)[;.]', page)
    assert set(re.findall("[a-z]+", type_list)) & TYPE_ROWS.keys() == {
        name for name, row in TYPE_ROWS.items() if row.family == family
    }


@parametrize_types(sorted(EXAMPLES.keys() - set(WRITE_ONLY_TYPES)))
def test_value_can_be_stored_changed_and_cleared(example: TypeExample, caller: ApiClient) -> None:
    first_value, second_value = example.values
    (sys_id,) = create_records(caller, [first_value])
    assert returned_value(caller, sys_id) == first_value

    assert caller.patch(f"thing/{sys_id}", {"it": second_value}).status_code == 200
    assert returned_value(caller, sys_id) == second_value

    assert caller.patch(f"thing/{sys_id}", {"it": None}).status_code == 200
    assert returned_value(caller, sys_id) is None


@parametrize_types(sorted(EXAMPLES))
def test_invalid_values_are_refused(example: TypeExample, caller: ApiClient) -> None:
    for value in example.refused_values:
        assert error_of(caller.post("thing", {"it": value})) == (422, "invalid_value", "it"), value


@parametrize_types(READABLE_TYPES)
def test_display_values_are_returned_and_accepted(example: TypeExample, caller: ApiClient) -> None:
    expected_texts = [
        value if display is None else display
        for value, display in zip(example.values, example.display_values, strict=True)
    ]
    ids = create_records(caller, expected_texts, input_display_value="1")

    assert [returned_value(caller, sys_id) for sys_id in ids] == list(example.values)
    assert [returned_value(caller, sys_id, display_value="1") for sys_id in ids] == expected_texts
    expected = [
        {"value": value, "display_value": text} for value, text in zip(example.values, expected_texts, strict=True)
    ]
    assert [returned_value(caller, sys_id, display_value="all") for sys_id in ids] == expected


@parametrize_types(sorted(EXAMPLES))
def test_only_supported_operators_are_accepted(example: TypeExample, caller: ApiClient) -> None:
    ids = create_records(caller, example.values)
    expected = {"=": [ids[0]], "!=": [ids[1]], "<": [], "LIKE": [ids[0]]}
    for operator in COMPARISONS:
        response = caller.get("thing", query=f"it{operator}{example.text_in_query}^ORDERBYsys_id", fields="sys_id")
        if operator in example.operators:
            assert [row["sys_id"] for row in data_of(response)] == expected[operator], operator
        else:
            assert response.status_code == 400, operator


@parametrize_types(sorted(EXAMPLES))
def test_sorting_follows_the_values_or_is_unsupported(example: TypeExample, caller: ApiClient) -> None:
    first_id, second_id = create_records(caller, example.values)
    response = caller.get("thing", query="ORDERBYDESCit", fields="sys_id")
    if "=" in example.operators and not isinstance(example.values[0], list):
        assert [row["sys_id"] for row in data_of(response)] == [second_id, first_id]
    else:
        assert response.status_code == 400


@parametrize_types(READABLE_TYPES)
def test_default_is_parsed_like_a_value(example: TypeExample, caller: ApiClient) -> None:
    column = Column.objects.get(name="it")
    column.default_value = str(example.values[0]) if example.default is None else example.default
    saving.save_column(column)

    (sys_id,) = column_values(caller.post("thing", {}), "sys_id")
    assert returned_value(caller, sys_id) == example.values[0]


@parametrize_types(sorted(EXAMPLES))
def test_unique_is_supported_or_refused(example: TypeExample, caller: ApiClient) -> None:
    column = Column.objects.get(name="it")
    column.is_unique = True
    if not example.can_be_unique:
        assert "cannot have this option" in refusal_of(lambda: saving.save_column(column))
        return
    saving.save_column(column)
    assert f"U{column.pk}" in indexes_of("thing")
    assert list(physical_names.column_indexes(column, "thing")) == [], "the unique index is enough"

    create_records(caller, example.values)
    assert error_of(caller.post("thing", {"it": example.values[0]})) == (409, "duplicate", "it")


@parametrize_types(sorted(EXAMPLES.keys() - set(REFERENCE_TYPES)))
def test_openapi_document_describes_the_values(example: TypeExample, client: Client, caller: ApiClient) -> None:
    response = client.get("/api/schema", headers=caller.headers)
    properties = json.loads(response.content)["components"]["schemas"]["table.thing"]["properties"]
    if "it" in properties:
        assert example.schema.items() <= properties["it"].items()


@parametrize_types(sorted(EXAMPLES))
def test_pages_show_the_column_and_its_values(example: TypeExample, as_alice: Client, caller: ApiClient) -> None:
    create_records(caller, example.values)
    column = Column.objects.get(name="it")
    design_page = as_alice.get("/design/thing/").content.decode()
    assert re.search(rf'name="columns-0-type" value="{column.type}"( checked)?>', design_page)

    list_page = as_alice.get("/tables/thing/")
    assert list_page.status_code == 200
    # A list shows times to the minute, without a zero second.
    for text in filter(None, example.display_values):
        assert column.type == "datetime" or text in list_page.content.decode()


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0m"), (59, "59s"), (60, "1m"), (3_600, "1h"), (86_400, "1d"), (90_061, "1d 1h 1m 1s"), (86_460, "1d 1m")],
)
def test_duration_is_shown_without_zero_units(seconds: int, text: str, bob: User) -> None:
    table("thing")
    field("thing", "it", "duration")
    open_table("thing")
    assert returned_value(api(bob), create_records(api(bob), [seconds])[0], display_value="1") == text


def test_reference_can_be_found_by_display_values_of_each_type(bob: User) -> None:
    for name, value, text in (("duration", 5_400, "1h 30m"), ("percent", 12.5, "12.5%"), ("email", "a@b.c", "a@b.c")):
        table(f"target_{name}")
        field(f"target_{name}", "it", name, is_display=True)
        open_table(f"target_{name}")
        (target_id,) = column_values(api(bob).post(f"target_{name}", {"it": value}), "sys_id")
        table(f"thing_{name}")
        field(f"thing_{name}", "it", target=f"target_{name}")
        open_table(f"thing_{name}")
        params = {"input_display_value": "1", "exclude_reference_link": "1"}
        assert column_values(api(bob).post(f"thing_{name}", {"it": text}, **params), "it") == [target_id]
