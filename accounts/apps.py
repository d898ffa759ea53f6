"""The app of users, roles and credentials."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def after_migrate(**_: Any) -> None:
    from accounts import roles

    roles.create_shipped_roles()


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People and access"

    def ready(self) -> None:
        from accounts import signals

        signals.connect_receivers()
        post_migrate.connect(after_migrate, sender=self)
