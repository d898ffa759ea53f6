"""The app of area C, document collections."""

from django.apps import AppConfig


class CollectionsConfig(AppConfig):
    name = "collections_app"
    verbose_name = "Document collections"
