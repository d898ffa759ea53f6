"""Single sign-on."""

from django.apps import AppConfig


class SsoConfig(AppConfig):
    name = "sso"
    verbose_name = "Single sign-on"

    def ready(self) -> None:
        from sso import signals
        from sso.connections import saving
        from sso.http import logout, views  # noqa: F401  (these register hooks)

        saving.register_saver()
        signals.connect_receivers()
