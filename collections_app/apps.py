"""App configuration of document collections."""

from django.apps import AppConfig
from django.conf import settings


class CollectionsConfig(AppConfig):
    name = "collections_app"
    verbose_name = "Document collections"

    def ready(self) -> None:
        if settings.PROCESS_TYPE not in ("worker", "beat"):  # these processes are not scraped
            from collections_app import metrics
            from system.monitoring.metrics import DATABASE_REGISTRY

            DATABASE_REGISTRY.register(metrics.QueueCollector())
