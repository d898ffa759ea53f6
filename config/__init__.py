"""Wiring only: environment, settings, addresses, Celery, and the runtime behind `manage.py up`."""
