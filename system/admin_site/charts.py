"""The charts of the dashboard: bars of the last 24 hours or 14 days, which a template draws as SVG."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils.timezone import localtime

from system.background import hourly_counts as counts
from system.models import HourlyCount
from system.templatetags.moments import DAY_FORMAT

HOURS, DAYS = 24, 14
BAR_WIDTH, CHART_HEIGHT = 10, 60
# The title of each chart, and the app whose administrators may see it.
CHARTS = (
    (counts.SIGN_INS, "Sign-ins", "sso"),
    (counts.REQUESTS, "Requests", "system"),
    (counts.REFUSALS, "Refused requests (4xx)", "system"),
    (counts.FAILURES, "Errors (5xx)", "system"),
    (counts.CHANGES, "Changes of records", "system"),
    (counts.QUEUE, "Longest document queue", "system"),
)


@dataclass(frozen=True)
class Bar:
    label: str
    count: int
    x: int
    height: int

    @property
    def y(self) -> int:
        return CHART_HEIGHT - self.height


@dataclass(frozen=True)
class Chart:
    title: str
    figure: int
    bars: list[Bar]
    width: int
    height: int = CHART_HEIGHT

    @property
    def highest(self) -> Bar:
        return max(self.bars, key=lambda bar: bar.count)


def build_charts(request: HttpRequest, *, by_day: bool) -> list[Chart]:
    """The charts that the user may see, from one query for at most 14 days."""
    user: Any = request.user
    visible = [(kind, title) for kind, title, app in CHARTS if user.has_module_perms(app)]
    now = datetime.now(UTC)
    if by_day:
        today = localtime(now, user.zone).date()
        slots: list[Any] = [today - timedelta(days=days) for days in reversed(range(DAYS))]
        start = datetime.combine(slots[0], time(), user.zone)
        labels = [DAY_FORMAT.format(day) for day in slots]
    else:
        hour = now.replace(minute=0, second=0, microsecond=0)
        slots = [hour - timedelta(hours=hours) for hours in reversed(range(HOURS))]
        start = slots[0]
        labels = [f"{localtime(slot, user.zone):%H:%M}" for slot in slots]
    totals: dict[tuple[str, Any], int] = {}
    rows = HourlyCount.objects.filter(hour__gte=start, kind__in=[kind for kind, _ in visible])
    for row_hour, kind, count in rows.values_list("hour", "kind", "count"):
        key = kind, localtime(row_hour, user.zone).date() if by_day else row_hour
        earlier = totals.get(key, 0)
        totals[key] = max(earlier, count) if kind == counts.QUEUE else earlier + count
    return [_chart(kind, title, labels, [totals.get((kind, slot), 0) for slot in slots]) for kind, title in visible]


def _chart(kind: str, title: str, labels: list[str], values: list[int]) -> Chart:
    highest = max(values)
    bars = [
        # A bar of a count other than 0 is always visible.
        Bar(label, value, number * BAR_WIDTH + 1, -(-value * CHART_HEIGHT // highest) if value else 0)
        for number, (label, value) in enumerate(zip(labels, values, strict=True))
    ]
    return Chart(title, highest if kind == counts.QUEUE else sum(values), bars, len(bars) * BAR_WIDTH)
