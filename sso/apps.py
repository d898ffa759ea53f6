"""The app of area A, single sign-on."""

from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "sso"
    verbose_name = "Single sign-on"

    def ready(self) -> None:
        from sso import signals
        from sso.http import logout, views  # noqa: F401  (two add themselves to signing in and out)

        signals.connect()
