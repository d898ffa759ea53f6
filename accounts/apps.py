"""The app of users, roles and credentials."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People and access"

    def ready(self) -> None:
        from accounts import roles, signals

        signals.connect_receivers()
        post_migrate.connect(roles.create_shipped_roles, sender=self)
