"""A user's time zone determines when days begin in their queries; rules always use UTC."""

from datetime import UTC, datetime

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from tableapi.read import context
from tests.tableapi.world import api, column_values, data_of, error_of, field, open_table, record, rule, table

pytestmark = pytest.mark.django_db

# In Auckland, it is already 1 May; in Honolulu, it is 04:30 on 30 April.
NOW = datetime(2026, 4, 30, 14, 30, tzinfo=UTC)
TIMES = {
    "a": "2026-04-29 09:59:59",
    "b": "2026-04-29 23:00:00",
    "c": "2026-04-30 09:00:00",
    "d": "2026-04-30 12:30:00",
    "e": "2026-05-01 09:00:00",
}


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "now", lambda: NOW)
    table("device")
    field("device", "name")
    field("device", "at", "datetime")
    field("device", "due", "date")
    open_table("device")
    for name, time_text in TIMES.items():
        record("device", name=name, at=datetime.fromisoformat(f"{time_text}+00:00"), due=time_text[:10])


def set_time_zone(user: User, name: str) -> User:
    user.time_zone = name
    user.save()
    return user


def matching_names(user: User, query: str) -> str:
    return "".join(column_values(api(user).get("device", query=f"{query}^ORDERBYname", fields="name"), "name"))


@pytest.mark.parametrize(
    ("query", "utc_names", "auckland_names", "honolulu_names"),
    [
        ("atONToday@javascript:gs.beginningOfToday()@javascript:gs.endOfToday()", "cd", "de", "de"),
        ("at>=javascript:gs.beginningOfToday()", "cde", "de", "de"),
        ("at<javascript:gs.daysAgoStart(0)", "ab", "abc", "abc"),
        ("atRELATIVEEE@day@ago@0", "cd", "de", "de"),
        ("atRELATIVEEE@month@ago@0", "abcd", "de", "abcde"),
        ("atON2026-04-30", "cd", "bc", "de"),
        ("atON2026-04-30 11:00:00", "cd", "bc", "de"),
        ("atONApril@2026-04-30@2026-04-30", "cd", "bc", "de"),
        ("atDAY_IS1", "e", "de", ""),
        ("atHOUR_IS9", "ace", "", ""),
        ("atHOUR_IS21", "", "ace", ""),
        ("atMONTH_IS5", "e", "de", ""),
        # Dates have no time zone, but "today" depends on it; other texts and hours are always in UTC.
        ("dueONToday@javascript:gs.beginningOfToday()@javascript:gs.endOfToday()", "cd", "e", "cd"),
        ("due=javascript:gs.beginningOfToday()", "cd", "e", "cd"),
        ("dueRELATIVEEE@day@ahead@1", "e", "", "e"),
        ("dueON2026-04-30", "cd", "cd", "cd"),
        ("dueDAY_IS1", "e", "e", "e"),
        ("at>2026-04-30 09:00:00", "de", "de", "de"),
        ("at>2026-04-30", "cde", "cde", "cde"),
        ("atRELATIVEGT@hour@ago@6", "cde", "cde", "cde"),
    ],
)
def test_days_begin_in_the_time_zone_of_the_caller(
    bob: User, query: str, utc_names: str, auckland_names: str, honolulu_names: str
):
    expected_names = {"UTC": utc_names, "Pacific/Auckland": auckland_names, "Pacific/Honolulu": honolulu_names}
    assert {zone: matching_names(set_time_zone(bob, zone), query) for zone in expected_names} == expected_names


def test_negated_condition_matches_all_other_records(bob: User):
    for zone in ("UTC", "Pacific/Auckland", "Asia/Kathmandu"):
        set_time_zone(bob, zone)
        assert sorted(matching_names(bob, "atON2026-04-30") + matching_names(bob, "atNOTON2026-04-30")) == list("abcde")


def test_statistics_group_by_days_of_the_caller(bob: User):
    path = "/rest/v1/stats/device?sysparm_count=true&sysparm_group_by=at:day"
    set_time_zone(bob, "Pacific/Auckland")
    counts = {entry["group"]["at:day"]: entry["count"] for entry in data_of(api(bob).get(path))}
    assert counts == {"2026-04-29": 1, "2026-04-30": 2, "2026-05-01": 2}
    path = path.replace("at:day", "due:day")
    counts = {entry["group"]["due:day"]: entry["count"] for entry in data_of(api(bob).get(path))}
    assert counts == {"2026-04-29": 2, "2026-04-30": 2, "2026-05-01": 1}


def test_conditions_of_rules_are_in_utc(bob: User):
    table("dated")
    field("dated", "at", "datetime")
    field("dated", "name")
    for name, time_text in TIMES.items():
        record("dated", name=name, at=datetime.fromisoformat(f"{time_text}+00:00"))
    rule("read", "dated", condition="atON2026-04-30^atDAY_IS30^at>=javascript:gs.beginningOfToday()")
    for zone in ("UTC", "Pacific/Auckland"):
        set_time_zone(bob, zone)
        visible_names = column_values(api(bob).get("dated", fields="name", query="ORDERBYname"), "name")
        assert visible_names == ["c", "d"]


def test_bulk_changes_and_exports_match_like_a_list(bob: User):
    set_time_zone(bob, "Pacific/Auckland")
    query = "at>=javascript:gs.beginningOfToday()"
    body = {"sysparm_query": query, "expected": 2, "values": {"name": "x"}}
    assert api(bob).patch("/rest/v1/bulk/device", body).status_code == 200
    exported_csv = b"".join(api(bob).get("device", query=query, fields="name", headers={"Accept": "text/csv"}))
    assert exported_csv.split() == [b"name", b"x", b"x"]


def test_first_and_last_supported_days(bob: User):
    for zone in ("Pacific/Auckland", "Pacific/Honolulu"):
        set_time_zone(bob, zone)
        for day in ("0001-01-01", "9999-12-31"):
            assert matching_names(bob, f"atON{day}") == "" and matching_names(bob, f"atNOTON{day}") == "abcde"
            assert matching_names(bob, f"atONx@{day} 00:00:00@{day} 23:59:59") == ""


def test_change_to_daylight_saving_time(bob: User):
    """On 29 March 2026 at 01:00 UTC, clocks in Berlin went from 02:00 to 03:00, so the day had 23 hours."""
    set_time_zone(bob, "Europe/Berlin")
    for name, time_text in (("x", "2026-03-28 23:00:00"), ("y", "2026-03-29 21:59:59"), ("z", "2026-03-29 22:00:00")):
        record("device", name=name, at=datetime.fromisoformat(f"{time_text}+00:00"))
    assert matching_names(bob, "atON2026-03-29") == "xy"


def test_unknown_time_zone_is_refused(alice: User, bob: User):
    error = error_of(api(alice).patch(f"user/{bob.pk}", {"time_zone": "Mars/Base"}))
    assert error == (422, "invalid_value", "time_zone")
    assert data_of(api(alice).patch(f"user/{bob.pk}", {"time_zone": "Asia/Kolkata"}))[0]["time_zone"] == "Asia/Kolkata"
    with pytest.raises(ValidationError):
        User(login="x", time_zone="Etc/GMT+5").full_clean()
