"""The Django apps for the runtime's commands and for the admin site."""

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import AdminConfig as DjangoAdminConfig


class ConfigConfig(AppConfig):
    name = "config"
    verbose_name = "Runtime"

    def ready(self) -> None:
        from config import celery

        celery.app.set_default()  # shared tasks are sent through it


class AdminConfig(DjangoAdminConfig):
    default_site = "system.admin_site.site.Site"

    def ready(self) -> None:
        # Background processes show no pages; loading the admin would cost each of them memory.
        if settings.PROCESS_TYPE not in ("worker", "beat"):
            super().ready()
