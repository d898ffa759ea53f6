"""The app that all other apps use."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_delete, post_migrate


def after_migrate(**_: Any) -> None:
    from system import properties
    from system.background import change_partitions

    properties.store_definitions()
    change_partitions.create_partitions()


class SystemConfig(AppConfig):
    name = "system"
    verbose_name = "System"

    def ready(self) -> None:
        from system import deletion_log

        post_delete.connect(deletion_log.on_delete)
        post_migrate.connect(after_migrate, sender=self)
