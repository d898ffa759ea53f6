"""The product's settings, with what the comparison needs."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as OF_PRODUCT
from config.settings import REST_FRAMEWORK as FRAMEWORK_OF_PRODUCT

INSTALLED_APPS = [*OF_PRODUCT, "bench.tableapi.project.apps.BenchConfig"]
ROOT_URLCONF = "bench.tableapi.project.urls"
REST_FRAMEWORK = {**FRAMEWORK_OF_PRODUCT, "DATETIME_FORMAT": "%Y-%m-%d %H:%M:%S"}
