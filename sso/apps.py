"""App configuration of single sign-on."""

from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "sso"
    verbose_name = "Single sign-on"

    def ready(self) -> None:
        from sso.connections.saving import ConnectionSaver
        from sso.http import logout, views  # noqa: F401  (these register hooks)
        from sso.models import OidcSetting
        from system.records import savers

        savers.register(OidcSetting, ConnectionSaver())
