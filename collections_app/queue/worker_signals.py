"""What the worker is woken up for."""

from system.background.task_dispatch import wake


def work() -> None:
    """A document waits for its turn."""
    wake("collections_app.tasks.work")


def purge() -> None:
    """Something deleted or replaced waits to be taken away."""
    wake("collections_app.tasks.purge")
