"""The app of area B, the Table API."""

from django.apps import AppConfig


class TableApiConfig(AppConfig):
    name = "tableapi"
    verbose_name = "Table API"
