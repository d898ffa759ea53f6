"""App configuration of the Table API."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db.models.signals import post_migrate

from system.records import custom_columns as custom_columns_registry


def update_catalogue(**_: Any) -> None:
    from tableapi.setup import product_tables, shipped_tables

    product_tables.update_product_tables()
    shipped_tables.create_shipped_tables()


class TableApiConfig(AppConfig):
    name = "tableapi"
    verbose_name = "Table API"

    def ready(self) -> None:
        from tableapi import signals
        from tableapi.design import saving
        from tableapi.write import custom_columns

        saving.register()
        custom_columns_registry.register(custom_columns)
        signals.connect_signals()
        post_migrate.connect(update_catalogue, sender=self)
        if settings.PROCESS_TYPE not in ("worker", "beat"):  # these processes are not scraped
            from system.monitoring.metrics import DATABASE_REGISTRY
            from tableapi.webhooks.metrics import DeliveryCollector

            DATABASE_REGISTRY.register(DeliveryCollector())
