"""Wiring only: environment, settings, URLs, Celery, and the runtime behind `manage.py up`."""
