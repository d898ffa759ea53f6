"""Queries: how conditions combine, sorting, errors, value functions, and the limits of a request."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import User
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, table

pytestmark = pytest.mark.django_db


class TestQueries:
    def matching_names(self, user: User, query: str) -> Any:
        return column_values(api(user).get("note", query=query, fields="name", limit=50), "name")

    def test_conditions_combine_by_precedence(self, note_ids: list[str], bob: User):
        for query, expected in (
            ("name=n01^name=n02^ORname=n01", ["n01"]),
            ("name=n01^rank=2^NQname=n03", ["n03"]),
            ("(name=n01^rank=1)^OR(name=n02^rank=2)", ["n01", "n02"]),
            ("name=n01^ORname=n02^rank=2", ["n02"]),
            ("name=n01^EQ", ["n01"]),
            ("rank=1^ORDERBYDESCname^name<n05", ["n04", "n01"]),
            ("ORDERBYDESCname^name<n02", ["n01", "n00"]),
        ):
            assert self.matching_names(bob, query) == expected, query

    def test_empty_query_matches_every_record(self, note_ids: list[str], bob: User):
        assert len(self.matching_names(bob, "")) == len(self.matching_names(bob, "^EQ")) == 25

    def test_values_can_contain_any_character(self, note_ids: list[str], bob: User):  # B46
        for value in (
            "a^b",
            "a)b",
            "it's; DROP TABLE x--",
            "{x}",
            "a=b",
            "%(p0)s",
            "%s",
            "\\",
            '"',
            "a&b+c#",
            "\u202e💡",
        ):
            record_id = record("note", name=value)
            quoted_value = "{" + value.replace("}", "}}") + "}"
            for query in (
                f"name={quoted_value}",
                f"nameLIKE{quoted_value}",
                f"nameSTARTSWITH{quoted_value}^ORDERBYname",
            ):
                assert column_values(api(bob).get("note", query=query, fields="sys_id"), "sys_id")[0] == record_id, (
                    query
                )

    @pytest.mark.parametrize(
        ("query", "code", "position"),
        [
            ("nameISNT", "invalid_query", 4),
            ("name", "invalid_query", 4),
            ("=x", "invalid_query", 0),
            ("^name=a", "invalid_query", 0),
            ("name=a^", "invalid_query", 7),
            ("name=a^^name=b", "invalid_query", 7),
            ("(name=a", "invalid_query", 0),
            ("name=a^nothing=1", "unknown_field", 7),
            ("Name=a", "invalid_query", 0),
            ("rank=x", "invalid_query", 5),
            ("name=a^rank>1.5", "invalid_query", 12),
            ("rankIN1,x", "invalid_query", 6),
            ("rankBETWEEN1", "invalid_query", 11),
            ("rank=99999999999999999999", "invalid_query", 5),
            ("rankBETWEEN1@99999999999999999999", "invalid_query", 11),
            ("rank=1_0", "invalid_query", 5),
            ("rank= 1", "invalid_query", 5),
            ("sys_created_at>yesterday", "invalid_query", 15),
            ("sys_created_at>2024-02-30", "invalid_query", 15),
            ("nameVALCHANGES", "invalid_query", 4),
            ("nameCHANGESTOx", "invalid_query", 4),
            ("rankLIKE1", "invalid_query", 0),
            ("nameIN", "invalid_query", 6),
            ("nameLIKE", "invalid_query", 8),
            ("name={a", "invalid_query", 5),
            ("nameMATCHESx", "invalid_query", 4),
            ("nameREGEXPx", "invalid_query", 4),
            ("ORDERBYnothing", "unknown_field", 7),
            ("rank=1^ORDERBYDESCnothing", "unknown_field", 18),
            ("nameISEMPTYx", "invalid_query", 11),
            ("name=javascript:alert(1)", "invalid_query", 5),
            ("name=javascript:gs.eval(1)", "invalid_query", 5),
            ("rank=javascript:gs.now()", "invalid_query", 5),
            ("name=a)", None, None),
            ("nameISEMPTY^(rank=1^ORDERBYname)", "invalid_query", None),
        ],
    )
    def test_invalid_query_is_refused_with_a_position(
        self, note_ids: list[str], bob: User, query: str, code: str | None, position: int | None
    ):  # B44 B45
        response = api(bob).get("note", query=query)
        if code is None:
            assert data_of(response) == []
            return
        assert error_of(response)[:2] == (400, code)
        (error,) = response.json()["errors"]
        assert error["field"] == (
            query[error["position"] :].partition("=")[0] if code == "unknown_field" else "sysparm_query"
        )
        assert position is None or error["position"] == position
        for fragment in ("SELECT", "records.", "psycopg", "rank", "sys_id"):
            assert fragment not in error["message"].replace(query, "") or fragment in query

    @pytest.mark.parametrize("number", ["99999999999999999999", "-9223372036854775809"])
    def test_out_of_range_number_names_the_range(self, note_ids: list[str], bob: User, number: str):
        (error,) = api(bob).get("note", query=f"rank>{number}").json()["errors"]
        assert "a whole number from -9223372036854775808 to 9223372036854775807 is expected" in error["message"]

    def test_lists_and_json_cannot_be_sorted(self, note_ids: list[str], bob: User):
        field("note", "who", "list", target="user")
        field("note", "more", "json")
        for name in ("who", "more"):
            assert error_of(api(bob).get("note", query=f"ORDERBY{name}"))[:2] == (400, "invalid_query")

    def test_empty_values_sort_last_ascending(self, note_ids: list[str], bob: User):
        ascending, descending = (
            column_values(
                api(bob).get("note", query=f"rank!=1^ORDERBY{direction}rank", fields="rank", limit=50), "rank"
            )
            for direction in ("", "DESC")
        )
        assert ascending == [2] * 8 + [None] * 9 and descending == ascending[::-1]


class TestValueFunctions:
    def test_time_functions_follow_the_current_time(self, db: Any, bob: User):
        table("event")
        field("event", "name")
        field("event", "at", "datetime")
        field("event", "day", "date")
        open_table("event")
        now = datetime.now(UTC)
        for name, days in (("last year", -400), ("yesterday", -1), ("now", 0), ("tomorrow", 1)):
            instant = now + timedelta(days=days)
            record("event", name=name, at=instant, day=instant.date())
        for query, expected in (
            ("at>=javascript:gs.beginningOfToday()^at<=javascript:gs.endOfToday()", ["now"]),
            ("day=javascript:gs.beginningOfToday()", ["now"]),
            ("at>=javascript:gs.daysAgoStart(1)^at<=javascript:gs.daysAgoEnd(1)", ["yesterday"]),
            ("at<javascript:gs.beginningOfYesterday()", ["last year"]),
            ("(at>javascript:gs.now())", ["tomorrow"]),
            ("at>javascript:gs.nowDateTime()", ["tomorrow"]),
            ("at>javascript:gs.daysAgo(-2)", []),
            ("atONx@javascript:gs.beginningOfTomorrow()@javascript:gs.endOfTomorrow()", ["tomorrow"]),
            ("atBETWEENjavascript:gs.yearsAgo(2)@javascript:gs.monthsAgo(1)", ["last year"]),
            ("atRELATIVEGT@day@ago@2^atRELATIVELT@hour@ago@1", ["yesterday"]),
            ("atRELATIVEGE@hour@ahead@1", ["tomorrow"]),
            ("atRELATIVEEE@day@ahead@1", ["tomorrow"]),
            ("atRELATIVELE@year@ago@1", ["last year"]),
            ("dayRELATIVEEE@day@ago@1", ["yesterday"]),
        ):
            assert column_values(api(bob).get("event", query=query, fields="name"), "name") == expected, query

    def test_caller_function_is_the_id_of_the_caller(self, db: Any, bob: User, alice: User):
        for user in (bob, alice):
            response = api(user).get("user", query="sys_id=javascript:gs.getUserID()", fields="login")
            assert data_of(response) == [{"login": user.login}]


class TestLimits:
    def test_length_of_the_query_string_is_limited(self, note_ids: list[str], bob: User):  # B41
        def send_query(length: int) -> Any:
            prefix = "sysparm_query=name!="
            return api(bob).get(f"note?{prefix}{'x' * (length - len(prefix))}")

        assert len(data_of(send_query(16 * 1024))) == 20
        assert error_of(send_query(16 * 1024 + 1)) == (414, "query_too_long", None)
        assert error_of(send_query(1_000_000)) == (414, "query_too_long", None)

    def test_number_of_conditions_is_limited(self, note_ids: list[str], bob: User):  # B41
        for joiner in ("^", "^OR", "^NQ"):
            assert len(data_of(api(bob).get("note", query=joiner.join(["name!=x"] * 200)))) == 20
            response = api(bob).get("note", query=joiner.join(["name!=x"] * 201))
            assert error_of(response) == (400, "invalid_query", "sysparm_query")

    @pytest.mark.parametrize("operator", ["IN", "NOT IN"])
    def test_number_of_list_values_is_limited(self, note_ids: list[str], bob: User, operator: str):  # B41
        values = [str(number) for number in range(1, 1001)]
        response = api(bob).get("note", query=f"rank{operator}{','.join(values)}", count="exact")
        assert response["X-Total-Count"] == ("16" if operator == "IN" else "9")
        response = api(bob).get("note", query=f"rank{operator}{','.join([*values, '0'])}")
        assert error_of(response) == (400, "invalid_query", "sysparm_query")

    def test_number_of_hops_is_limited(self, note_ids: list[str], bob: User):  # B42
        field("note", "parent", target="note")
        for query in ("PATH=x", "ORDERBYPATH", "nameSAMEASPATH"):
            five_hops, six_hops = (query.replace("PATH", "parent." * hops + "name") for hops in (5, 6))
            assert api(bob).get("note", query=five_hops).status_code == 200
            assert error_of(api(bob).get("note", query=six_hops))[:2] == (400, "invalid_query")
        assert error_of(api(bob).get("note", query="parent." * 50 + "name=x"))[:2] == (400, "invalid_query")

    def test_sort_keys_and_nested_parentheses_are_limited(self, note_ids: list[str], bob: User):
        assert data_of(api(bob).get("note", query="^".join(["ORDERBYname"] * 20)))
        assert error_of(api(bob).get("note", query="^".join(["ORDERBYname"] * 21)))[:2] == (400, "invalid_query")
        assert data_of(api(bob).get("note", query="(" * 20 + "name=n01" + ")" * 20))
        assert error_of(api(bob).get("note", query="(" * 21 + "name=n01" + ")" * 21))[:2] == (400, "invalid_query")
