"""Cursors: the pages add up to the list, and a cursor is valid for one list only."""

import base64
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from accounts.models import User
from tests.tableapi.designs import query_rows
from tests.tableapi.world import (
    api,
    column_values,
    data_of,
    error_of,
    field,
    next_page_url,
    open_table,
    record,
    rule,
    table,
    values_of_all_pages,
)

pytestmark = pytest.mark.django_db


# Values in ascending order, with ties and empty values.
SORTED_VALUES: dict[str, list[Any]] = {
    "string": ["", None, "a", "A", "b", "B", "ä", "Ä", "z%"],
    "text": ["", None, "a", "A", "b", "it's"],
    "wysiwyg": [None, "<p>b</p>", "<b>B</b>", "<p>a</p>"],
    "integer": [-5, -5, 0, 3, 3, 2**63 - 1, None, None],
    "decimal": ["-0.5", "-0.50", "1e-20", "3", "12345678901234567890.1", None, None],
    "boolean": [True, False, True, False, None, None],
    "datetime": [
        "2024-05-19 00:00:00.1+00",
        "2024-05-19 00:00:00.2+00",
        "2024-05-19 00:00:00.1+00",
        "1999-01-01 00:00:00+00",
        None,
        None,
    ],
    "date": ["2024-05-19", "2024-05-19", "0001-01-01", "9999-12-31", None, None],
    "choice": ["b", "B", "a", "a", None, None],
    "reference": ["1", "1", "2", None, None],
}


@pytest.mark.parametrize("type_name", SORTED_VALUES)
def test_concatenated_cursor_pages_equal_the_list(type_name: str, alice: User, bob: User):
    """Ascending and descending, with ties and empty values, by one or two keys, and through a reference."""
    table("thing")
    attributes: dict[str, Any] = {"choices": {"a": "A", "b": "B", "B": "C"}} if type_name == "choice" else {}
    field("thing", "it", type_name, **attributes, **({"target": "user"} if type_name == "reference" else {}))
    field("thing", "rank", "integer", is_indexed=True)
    field("thing", "parent", target="thing")
    open_table("thing")
    parent = None
    user_ids = {"1": alice.pk, "2": bob.pk} if type_name == "reference" else {}
    for number, value in enumerate(SORTED_VALUES[type_name]):
        value = user_ids.get(value, value)
        parent = record("thing", it=value, rank=number % 2 or None, parent=parent)
    caller = api(bob, credential="key")
    all_ids = set(column_values(caller.get("thing", fields="sys_id"), "sys_id"))
    assert len(all_ids) == len(SORTED_VALUES[type_name])

    for query in (
        "ORDERBYit",
        "ORDERBYDESCit",
        "ORDERBYrank^ORDERBYDESCit",
        "ORDERBYDESCrank^ORDERBYit",
        "ORDERBYparent.it",
        "rankISNOTEMPTY^ORrankISEMPTY^ORDERBYDESCparent.it",
    ):
        whole_list = column_values(caller.get("thing", query=query, fields="sys_id", limit=100), "sys_id")
        assert set(whole_list) == all_ids, query
        assert (
            list(values_of_all_pages(caller, "thing", "sys_id", query=query, fields="sys_id", limit=1)) == whole_list
        ), query
    ascending_ids = column_values(caller.get("thing", query="ORDERBYit", fields="it,sys_id"), "sys_id")
    assert column_values(caller.get("thing", query="ORDERBYDESCit", fields="sys_id"), "sys_id") == ascending_ids[::-1]
    # Empty values are last in ascending order.
    sorted_values = [record["it"] for record in data_of(caller.get("thing", query="ORDERBYit", fields="it"))]
    value_count = sum(value not in (None, "") for value in SORTED_VALUES[type_name])
    assert all(value is not None for value in sorted_values[:value_count]) and sorted_values[value_count:] == [None] * (
        len(sorted_values) - value_count
    )


class TestCursors:
    def test_cursor_pages_without_a_sort_are_ordered_by_id(self, note_ids: list[str], bob: User):
        for query, expected in (("", note_ids), ("ORDERBYDESCsys_id", note_ids[::-1])):
            assert list(values_of_all_pages(api(bob), "note", "sys_id", limit=4, query=query)) == expected

    def test_concurrent_inserts_and_deletes_do_not_shift_pages(self, note_ids: list[str], bob: User):
        first_page = api(bob).get("note", limit=10)
        query_rows("DELETE FROM records.note WHERE sys_id = ANY (%s)", note_ids[3:10])
        record("note", sys_id="0", name="early")
        assert (
            column_values(api(bob).get(next_page_url(first_page).removeprefix("http://testserver")), "sys_id")
            == note_ids[10:20]
        )

    def test_page_size_and_output_options_can_change(self, note_ids: list[str], bob: User):
        cursor = parse_qs(urlsplit(next_page_url(api(bob).get("note", limit=10))).query)["sysparm_cursor"][0]
        response = api(bob).get("note", limit=3, cursor=cursor, display_value=1, exclude_reference_link=1)
        assert column_values(response, "sys_id") == note_ids[10:13]

    def test_cursor_is_valid_only_for_its_list_and_caller(self, note_ids: list[str], bob: User, alice: User):
        table("other")
        field("other", "name")
        rule("read", "other")
        params = {"query": "ORDERBYname", "fields": "name,sys_id", "limit": 5}
        cursor = parse_qs(urlsplit(next_page_url(api(bob).get("note", **params))).query)["sysparm_cursor"][0]

        assert len(data_of(api(bob).get("note", **params, cursor=cursor))) == 5
        responses = [
            api(alice).get("note", **params, cursor=cursor),
            api(bob).get("other", **params, cursor=cursor),
            api(bob).get("note", **{**params, "query": "ORDERBYDESCname"}, cursor=cursor),
            api(bob).get("note", **{**params, "query": "name!=x^ORDERBYname"}, cursor=cursor),
            api(bob).get("note", **{**params, "fields": "name"}, cursor=cursor),
            api(bob).get("note", cursor=cursor),
        ]
        for invalid_cursor in (
            cursor[:-1],
            cursor[1:],
            cursor + "A",
            cursor.swapcase(),
            "A" * 40,
            "x",
            "=",
            "é",
            "A" * 5000,
            " ",
            "{}",
            f"{cursor[:-4]}AAAA",
        ):
            responses.append(api(bob).get("note", **params, cursor=invalid_cursor))
        assert {error_of(response) for response in responses} == {(400, "invalid_parameter", "sysparm_cursor")}
        assert len({response.content for response in responses}) == 1

    def test_cursor_reveals_nothing(self, note_ids: list[str], bob: User):
        cursor = parse_qs(urlsplit(next_page_url(api(bob).get("note", query="ORDERBYname", limit=5))).query)[
            "sysparm_cursor"
        ][0]
        assert b"n04" not in base64.urlsafe_b64decode(cursor + "==")
        assert next_page_url(api(bob).get("note", limit=5)) == next_page_url(api(bob).get("note", limit=5))

    def test_cursor_and_offset_exclude_each_other(self, note_ids: list[str], bob: User):
        cursor = parse_qs(urlsplit(next_page_url(api(bob).get("note", limit=5))).query)["sysparm_cursor"][0]
        assert error_of(api(bob).get("note", limit=5, cursor=cursor, page=2)) == (
            400,
            "invalid_parameter",
            "sysparm_cursor",
        )
        assert len(data_of(api(bob).get("note", limit=5, cursor=cursor, page=1))) == 5
