"""The dashboard: first steps, and charts from counts by hour."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from accounts.models import User
from collections_app import embed
from collections_app.models import Collection
from system.admin_site import dashboard
from system.admin_site.charts import build_charts
from system.background import hourly_counts
from system.background.hourly_counts import ADD, RAISE, REPLACE, ProcessCounts
from system.http import steps
from system.models import HourlyCount, Property
from system.records import acting_user
from tests.accounts.callers import sign_in
from tests.tableapi.designs import make_table


def counts_of(kind: str) -> list[int]:
    return list(HourlyCount.objects.filter(kind=kind).order_by("hour").values_list("count", flat=True))


@pytest.fixture
def hour(db: None) -> datetime:
    return hourly_counts.current_hour()


@pytest.fixture
def totals(monkeypatch: Any) -> Counter[str]:
    """The responses that this process has counted."""
    counted: Counter[str] = Counter()
    monkeypatch.setattr(hourly_counts, "TOTALS", [lambda: Counter(counted)])
    return counted


def test_stored_counts_are_added_replaced_or_raised(hour: datetime):
    for change, expected in ((ADD, 7), (REPLACE, 2), (RAISE, 5)):
        hourly_counts.store(hour, change[:10], 5, change)
        hourly_counts.store(hour, change[:10], 2, change)
        assert counts_of(change[:10]) == [expected], change


def test_processes_add_what_they_counted_since_the_last_time(hour: datetime, totals: Counter[str]):
    first, second = ProcessCounts(), ProcessCounts()
    totals["requests"] = 3
    first.write()
    totals["requests"] = 5
    first.write()
    second.write()
    second.write()
    assert counts_of("requests") == [10]


def test_counts_survive_an_unavailable_database(hour: datetime, totals: Counter[str], monkeypatch: Any):
    counts = ProcessCounts()
    totals["requests"] = 3
    with monkeypatch.context() as patch:
        patch.setattr(hourly_counts, "run_statement", lambda *_: (_ for _ in ()).throw(OperationalError("away")))
        for _ in range(3):
            with pytest.raises(OperationalError):
                counts.write()
    totals["requests"] = 4
    counts.write()
    assert counts_of("requests") == [4] and counts.unstored == {}


def test_unstored_counts_do_not_grow(hour: datetime):
    counts = ProcessCounts()
    counts.unstored = {(hour - timedelta(hours=hours), "requests"): 1 for hours in range(500)}
    counts.add("requests")
    assert len(counts.unstored) == hourly_counts.MAX_UNSTORED_HOURS + 1


def test_responses_are_counted_by_status(db: None):
    before = steps.response_totals()
    for path, status in (("/login/", 200), ("/api/me", 401), ("/healthz", 200)):
        assert Client().get(path).status_code == status
    difference = steps.response_totals() - before
    assert difference == Counter(requests=2, refusals=1)


def test_requests_cost_no_statement_and_no_lock(as_bob: Client, monkeypatch: Any):
    monkeypatch.setattr(hourly_counts.process_counts, "add", lambda *_: pytest.fail("A request counted itself."))
    assert as_bob.get("/api/me").status_code == 200


def test_sign_ins_are_counted(bob: User, hour: datetime, monkeypatch: Any):
    counts = ProcessCounts()
    monkeypatch.setattr(hourly_counts, "process_counts", counts)
    sign_in("bob")
    assert counts.unstored == {(hour, "sign_ins"): 1}


def test_changes_and_the_queue_are_counted_and_old_counts_deleted(bob: User, hour: datetime, monkeypatch: Any):
    hourly_counts.store(hour - timedelta(days=31), "requests", 1, ADD)
    lengths = iter((3, 1))
    monkeypatch.setattr(hourly_counts, "QUEUE_LENGTHS", [lambda: next(lengths)])
    hourly_counts.store_data_counts()
    earlier_count = sum(counts_of("changes"))
    bob.first_name = "Robert"
    bob.save()
    hourly_counts.store_data_counts()

    assert sum(counts_of("changes")) == earlier_count + 1
    assert counts_of("queue") == [3] and counts_of("requests") == []


def test_changes_are_found_by_an_index(db: None):
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT count(*) FROM sys_change WHERE at >= now() - interval '1 hour'")
        assert "_at_idx" in str(cursor.fetchall())


def charts_for(client: Client, **parameters: str) -> dict[str, Any]:
    response = client.get("/admin/", parameters)
    return {chart.title: chart for chart in response.context["charts"]}


def test_charts_show_24_hours_or_14_days(as_alice: Client, hour: datetime):
    for hours, count in ((0, 5), (1, 3), (30, 100), (24 * 20, 1000)):
        hourly_counts.store(hour - timedelta(hours=hours), "requests", count, ADD)
        hourly_counts.store(hour - timedelta(hours=hours), "queue", count, ADD)

    by_hour, by_day = charts_for(as_alice), charts_for(as_alice, range="days")
    assert [bar.count for bar in by_hour["Requests"].bars] == [0] * 22 + [3, 5]
    assert (by_hour["Requests"].figure, by_hour["Requests"].bars[-1].height) == (8, 60)
    assert by_day["Requests"].figure == 108 and len(by_day["Requests"].bars) == 14
    assert by_hour["Longest document queue"].figure == 5 and by_day["Longest document queue"].figure == 100


def test_days_begin_in_the_time_zone_of_the_user(rf: Any, alice: User):
    alice.time_zone = "Pacific/Auckland"
    request = rf.get("/")
    request.user = alice
    charts = build_charts(request, by_day=True)
    assert charts[0].bars[-1].label == f"{datetime.now(UTC).astimezone(alice.zone):%-d %b %Y}"


def test_small_counts_have_a_visible_bar(as_alice: Client, hour: datetime):
    hourly_counts.store(hour, "requests", 1_000_000, ADD)
    hourly_counts.store(hour - timedelta(hours=1), "requests", 1, ADD)
    assert [bar.height for bar in charts_for(as_alice)["Requests"].bars[-2:]] == [1, 60]


def test_charts_are_svg_with_text(as_alice: Client, hour: datetime):
    hourly_counts.store(hour, "requests", 7, ADD)
    page = as_alice.get("/admin/").content.decode()
    assert page.count('<svg class="sb-chart"') == 6
    assert f'aria-label="Requests: 7. Most at {hour:%H:%M}: 7."' in page
    assert f"<tr><td>{hour:%H:%M}</td><td>7</td></tr>" in page
    assert "<script>" not in page.partition("sb-charts")[2].partition("</section>")[0]


def test_charts_take_one_query(as_alice: Client, rf: Any, alice: User):
    request = rf.get("/")
    request.user = User.objects.get(pk=alice.pk)
    request.user.role_names  # noqa: B018
    with CaptureQueriesContext(connection) as queries:
        build_charts(request, by_day=True)
    assert len(queries) == 1


def test_sso_administrators_see_only_sign_ins(sonja: User):
    as_sonja = Client()
    as_sonja.force_login(sonja)
    assert list(charts_for(as_sonja)) == ["Sign-ins"]
    page = as_sonja.get("/admin/")
    assert [step.title for step in page.context["steps"]] == ["Connect single sign-on"]
    assert b"Hide these steps" not in page.content


def test_collection_administrators_see_only_their_steps(carl: User):
    as_carl = Client()
    as_carl.force_login(carl)
    assert charts_for(as_carl) == {}
    titles = [step.title for step in as_carl.get("/admin/").context["steps"]]
    assert titles == ["Create a document collection", "Load the first document"]


def done_titles(client: Client) -> set[str]:
    return {step.title for step in client.get("/admin/").context["steps"] if step.is_done}


def test_steps_are_ticked_when_they_are_done(as_alice: Client, alice: User):
    assert done_titles(as_alice) == set()
    User.objects.create_user("colleague")
    Collection.objects.create(name="manuals", space=embed.default_space())
    with acting_user.acting_as(alice.pk):
        make_table("laptop")
    expected = {"Add the people who work with you", "Create a document collection", "Create a table"}
    assert done_titles(as_alice) == expected


def test_steps_disappear_when_all_are_done_or_hidden(as_alice: Client, monkeypatch: Any):
    assert b"First steps" in as_alice.get("/admin/").content
    done_step = dashboard.Step("Done", "/", is_done=True)
    with monkeypatch.context() as patch:
        patch.setattr(dashboard, "STEPS", [(1, "system", lambda: done_step)])
        assert b"First steps" not in as_alice.get("/admin/").content

    steps_property = Property.objects.get(name="svc.dashboard.first_steps")
    assert f"/admin/system/property/{steps_property.pk}/change/".encode() in as_alice.get("/admin/").content
    steps_property.value = "false"
    steps_property.save()
    assert b"First steps" not in as_alice.get("/admin/").content
