"""How pages show a time: on the clock of the reader, and relative to now if it is recent."""

from datetime import datetime, timedelta

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.utils import timezone

register = template.Library()

DAY_FORMAT = "{0.day} {0:%b %Y}"
MINUTE_FORMAT = f"{DAY_FORMAT}, {{0:%H:%M}}"
# After that, the date says more than "3 weeks ago".
MAX_RELATIVE_AGE = timedelta(days=7)


def moment_context(at: datetime, now: datetime) -> dict[str, str]:
    """A time for machines, exactly, and as a text.

    >>> noon = datetime(2026, 11, 27, 12)
    >>> moment_context(noon - timedelta(days=8), noon)["text"], moment_context(noon + timedelta(1), noon)["text"]
    ('19 Nov 2026, 12:00', '28 Nov 2026, 12:00')
    """
    exact = MINUTE_FORMAT.format(at)
    is_recent = timedelta(0) <= now - at < MAX_RELATIVE_AGE
    return {"iso": at.isoformat(), "exact": exact, "text": naturaltime(at) if is_recent else exact}


@register.inclusion_tag("pages/time.html")
def moment(at: datetime | None) -> dict[str, dict[str, str] | None]:
    """Nothing for None."""
    return {"time": moment_context(timezone.localtime(at), timezone.now()) if at else None}
