"""Wakes the worker."""

from system.background.task_dispatch import wake_worker


def request_processing() -> None:
    wake_worker("collections_app.tasks.work")


def request_refresh() -> None:
    wake_worker("collections_app.tasks.refresh_sources")


def request_purge() -> None:
    wake_worker("collections_app.tasks.purge")


def request_evaluation() -> None:
    wake_worker("collections_app.tasks.evaluate")
