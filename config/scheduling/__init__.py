"""Celery beat with a leader, and its schedules."""
