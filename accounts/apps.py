"""App configuration of users, roles and credentials."""

from django.apps import AppConfig
from django.contrib.auth.signals import user_logged_in
from django.db.models.signals import post_migrate


class AccountsConfig(AppConfig):
    name = "accounts"
    verbose_name = "People and access"

    def ready(self) -> None:
        from accounts import roles, signals  # noqa: F401  (connects its receivers)

        user_logged_in.disconnect(dispatch_uid="update_last_login")  # Django's own, which saves the user
        post_migrate.connect(roles.create_shipped_roles, sender=self)
