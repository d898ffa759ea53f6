"""Metrics of the document queue, read from the database."""

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from collections_app.documents.deletion import SUPERSEDED_CODE
from collections_app.models import Source, Version
from collections_app.models.documents import UNFINISHED_STATES, VersionState
from system.plain_sql import fetch_rows

# Uses the database's clock, like the rest of the queue.
OLDEST_DUE_SQL = """
SELECT coalesce(extract(epoch FROM max(clock_timestamp() - next_at)), 0)::float FROM document_version
WHERE state IN ('queued', 'extracting', 'splitting', 'embedding') AND next_at <= clock_timestamp()
    AND (lease_until IS NULL OR lease_until <= clock_timestamp())
"""


class QueueCollector(Collector):
    def describe(self) -> list[GaugeMetricFamily]:
        return []  # registering the collector must not query the database

    def collect(self) -> Iterator[GaugeMetricFamily]:
        unfinished_gauge = GaugeMetricFamily(
            "servicebase_documents_unfinished", "Number of documents in progress, by state.", labels=["state"]
        )
        unfinished_versions = Version.objects.filter(state__in=UNFINISHED_STATES).order_by()
        by_state = dict(unfinished_versions.values_list("state").annotate(Count("id")))
        for state in UNFINISHED_STATES:
            unfinished_gauge.add_metric([state.value], by_state.get(state.value, 0))
        yield unfinished_gauge
        ((oldest_due_s,),) = fetch_rows(OLDEST_DUE_SQL)
        yield GaugeMetricFamily(
            "servicebase_documents_oldest_due_seconds",
            "How long the oldest due document has been waiting, in seconds.",
            value=oldest_due_s,
        )
        failed_gauge = GaugeMetricFamily(
            "servicebase_documents_failed", "Number of documents whose last load failed, by reason.", labels=["reason"]
        )
        failed_versions = Version.objects.filter(state=VersionState.FAILED).exclude(error_code=SUPERSEDED_CODE)
        for reason, count in failed_versions.order_by().values_list("error_code").annotate(Count("id")):
            failed_gauge.add_metric([reason], count)
        yield failed_gauge
        yield GaugeMetricFamily(
            "servicebase_sources_failing",
            "Number of web pages and watched folders whose last refresh failed.",
            value=Source.objects.filter(collection__deleted_at__isnull=True).exclude(error="").count(),
        )
