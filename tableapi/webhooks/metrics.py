"""Metrics of unfinished deliveries, read from the database."""

from collections.abc import Iterator

from django.db.models import Count
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from tableapi.models import WebhookDelivery

UNFINISHED_STATES = (WebhookDelivery.State.WAITING, WebhookDelivery.State.PARKED)


class DeliveryCollector(Collector):
    def describe(self) -> list[GaugeMetricFamily]:
        return []  # registering the collector must not query the database

    def collect(self) -> Iterator[GaugeMetricFamily]:
        gauge = GaugeMetricFamily(
            "servicebase_webhook_deliveries_unfinished",
            "Number of webhook deliveries that wait or are parked, by state.",
            labels=["state"],
        )
        unfinished = WebhookDelivery.objects.filter(state__in=UNFINISHED_STATES).order_by()
        counts = dict(unfinished.values_list("state").annotate(Count("id")))
        for state in UNFINISHED_STATES:
            gauge.add_metric([state.value], counts.get(state.value, 0))
        yield gauge
