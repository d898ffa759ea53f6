"""The product's settings, with additions for the comparison."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as PRODUCT_APPS
from config.settings import REST_FRAMEWORK as PRODUCT_REST_FRAMEWORK

INSTALLED_APPS = [*PRODUCT_APPS, "bench.tableapi.project.apps.BenchConfig"]
ROOT_URLCONF = "bench.tableapi.project.urls"
REST_FRAMEWORK = {**PRODUCT_REST_FRAMEWORK, "DATETIME_FORMAT": "%Y-%m-%d %H:%M:%S"}
