"""Lists: pages, links, counts and parameters."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from accounts.models import User
from tests.tableapi.designs import query_rows
from tests.tableapi.world import api, column_values, data_of, error_of, next_page_url

pytestmark = pytest.mark.django_db


class TestPages:
    def test_default_page_size_is_twenty(self, note_ids: list[str], bob: User):
        response = api(bob).get("note")
        assert column_values(response, "sys_id") == note_ids[:20]
        assert "X-Total-Count" not in response

    def test_page_and_limit_select_the_records(self, note_ids: list[str], bob: User):
        for limit, page, expected in (
            (7, 1, note_ids[:7]),
            (7, 3, note_ids[14:21]),
            (7, 4, note_ids[21:]),
            (7, 5, []),
            (25, 1, note_ids),
        ):
            response = api(bob).get("note", limit=limit, page=page)
            assert column_values(response, "sys_id") == expected
            assert ("Link" in response) is (limit * page < 25)

    @pytest.mark.parametrize("name", ["limit", "page"])
    def test_invalid_numbers_are_refused(self, note_ids: list[str], bob: User, name: str):  # B39 B40
        for value in ("0", "-1", "1e3", "", " ", "1.5", "x", "+1", "1_0", "٣", "0x1", "9" * 400, "1000000000000"):
            response = api(bob).get("note", **{name: value})
            assert error_of(response) == (400, "invalid_parameter", f"sysparm_{name}"), value

    def test_limit_and_offset_have_a_maximum(self, note_ids: list[str], bob: User):  # B39 B40
        assert len(data_of(api(bob).get("note", limit=10_000))) == 25
        assert error_of(api(bob).get("note", limit=10_001)) == (400, "invalid_parameter", "sysparm_limit")
        assert data_of(api(bob).get("note", limit=10_000, page=100)) == []
        deep_response = api(bob).get("note", limit=10_000, page=101)
        assert error_of(deep_response) == (400, "invalid_parameter", "sysparm_page")
        assert "cursor" in deep_response.json()["errors"][0]["message"]
        assert data_of(api(bob).get("note", limit=1, page=1_000_000)) == []
        for page in (1_000_001, 10**20):
            response = api(bob).get("note", limit=1, page=page)
            assert (
                error_of(response) == (400, "invalid_parameter", "sysparm_page")
                and b"1 to 1,000,000" in response.content
            )

    def test_next_link_keeps_the_parameters(self, note_ids: list[str], bob: User):
        response = api(bob).get(
            "note?lang=de&sysparm_page=2", limit=5, query="name!=x^ORDERBYDESCname", fields="name,sys_id"
        )
        query = parse_qs(urlsplit(next_page_url(response)).query)
        assert query.pop("sysparm_cursor")
        assert query == {"lang": ["de"], "sysparm_limit": ["5"], "sysparm_query": ["name!=x^ORDERBYDESCname"],
                         "sysparm_fields": ["name,sys_id"]}  # fmt: skip
        next_page = api(bob).get(next_page_url(response).removeprefix("http://testserver"))
        assert column_values(next_page, "name") == [f"n{number:02}" for number in range(14, 9, -1)]

    def test_next_link_uses_the_base_url(self, note_ids: list[str], bob: User, settings: Any):
        settings.BASE_URL = "https://desk.example.com"
        assert next_page_url(api(bob).get("note")).startswith("https://desk.example.com/rest/v1/table/note?")


class TestCounts:
    @pytest.mark.parametrize("count_mode", ["exact", "estimated"])
    def test_total_count_ignores_the_page(self, note_ids: list[str], bob: User, count_mode: str):
        assert api(bob).get("note", count=count_mode, limit=2)["X-Total-Count"] == "25"
        assert api(bob).get("note", count=count_mode, limit=2, page=99)["X-Total-Count"] == "25"
        assert api(bob).get("note", count=count_mode, query="rank=1^ORname=n00")["X-Total-Count"] == "9"

    def test_estimate_stops_at_ten_thousand(self, note_ids: list[str], bob: User):
        """The query planner's estimate would include records that Bob may not read."""
        query_rows(
            "INSERT INTO records.note (name, rank, sys_db_table_id) "
            "SELECT 'many', n, sys_db_table_id FROM generate_series(1, 10000) n, records.note WHERE sys_id = %s",
            note_ids[0],
        )
        assert api(bob).get("note", count="estimated", limit=1)["X-Total-Count"] == "10000"
        assert api(bob).get("note", count="exact", limit=1)["X-Total-Count"] == "10025"
        assert api(bob).get("note", count="estimated", limit=1, query="rank>9000^name=many")["X-Total-Count"] == "1000"

    def test_unknown_count_mode_is_refused(self, note_ids: list[str], bob: User):
        for count_mode in ("1", "Exact", "all"):
            assert error_of(api(bob).get("note", count=count_mode)) == (400, "invalid_parameter", "sysparm_count")

    def test_count_works_with_a_cursor(self, note_ids: list[str], bob: User):
        first_page = api(bob).get("note", count="exact", limit=20)
        next_page = api(bob).get(next_page_url(first_page).removeprefix("http://testserver"))
        assert len(data_of(next_page)) == 5 and next_page["X-Total-Count"] == "25"


class TestParameters:
    def test_unknown_parameters_are_ignored(self, note_ids: list[str], bob: User):
        unknown_parameters = "sysparm_suppress_pagination_header=1&x=1&x=2&sysparm_=&SYSPARM_LIMIT=1&limit=1&%00=1"
        for path in ("note", f"note/{note_ids[0]}"):
            assert api(bob).get(f"{path}?{unknown_parameters}").content == api(bob).get(path).content

    def test_list_parameters_are_ignored_for_one_record(self, note_ids: list[str], bob: User):
        params = {"limit": "x", "page": 0, "query": "nothing=1", "cursor": "x", "count": "x"}
        assert api(bob).get(f"note/{note_ids[0]}", **params).content == api(bob).get(f"note/{note_ids[0]}").content

    @pytest.mark.parametrize(
        "name",
        ["limit", "page", "query", "fields", "view", "cursor", "count", "display_value", "exclude_reference_link"],
    )
    def test_duplicate_parameter_is_refused(self, note_ids: list[str], bob: User, name: str):
        response = api(bob).get(f"note?sysparm_{name}=1&sysparm_{name}=1")
        assert error_of(response) == (400, "invalid_parameter", f"sysparm_{name}")

    @pytest.mark.parametrize("name", ["display_value", "exclude_reference_link"])
    def test_boolean_parameters_accept_only_boolean_values(self, note_ids: list[str], bob: User, name: str):
        for path in ("note", f"note/{note_ids[0]}"):
            enabled_content, disabled_content = (api(bob).get(path, **{name: value}).content for value in (1, 0))
            assert enabled_content != disabled_content
            assert all(api(bob).get(path, **{name: value}).content == enabled_content for value in ("true", "True"))
            assert all(
                api(bob).get(path, **{name: value}).content == disabled_content for value in ("false", "False", "")
            )
            for value in ("2", "yes", "on", "all of it", "1 ", "null"):
                assert error_of(api(bob).get(path, **{name: value})) == (400, "invalid_parameter", f"sysparm_{name}")

    def test_display_value_all_ignores_case(self, note_ids: list[str], bob: User):
        expected = api(bob).get("note", display_value="all").content
        assert all(api(bob).get("note", display_value=value).content == expected for value in ("ALL", "All"))
        assert expected != api(bob).get("note", display_value="1").content
        for value in ("ALL", "all"):
            refusal = error_of(api(bob).get("note", exclude_reference_link=value))
            assert refusal == (400, "invalid_parameter", "sysparm_exclude_reference_link")

    def test_invalid_characters_are_refused(self, note_ids: list[str], bob: User):  # B35
        for name in ("query", "fields", "view", "cursor"):
            response = api(bob).get(f"note?sysparm_{name}=name%00")
            assert error_of(response) == (400, "invalid_parameter", f"sysparm_{name}")
        assert api(bob).get("note?sysparm_query=name%3D%FF%FE").status_code == 200, "invalid UTF-8 becomes �"

    def test_replica_read_works_without_a_replica(self, note_ids: list[str], bob: User):
        expected = api(bob).get("note").content
        for category in ("replica", "primary", "anything", ""):
            assert api(bob).get("note", query_category=category).content == expected
