"""Django app of the comparison, labelled `bench` because `tableapi` is an app of the product."""

from django.apps import AppConfig


class BenchConfig(AppConfig):
    name = "bench.tableapi.project"
    label = "bench"
