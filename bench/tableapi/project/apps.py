"""In charge of how Django calls this app: its folder's name is taken by the product's own."""

from django.apps import AppConfig


class BenchConfig(AppConfig):
    name = "bench.tableapi.project"
    label = "bench"
