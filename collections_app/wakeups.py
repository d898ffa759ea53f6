"""In charge of telling the worker that there is something to do; what is to be done stands in rows."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

logger = structlog.get_logger(__name__)

# A wake-up that nobody took in this time says nothing new: the sweeper sends another. So a hundred uploads leave no
# hundred messages for other work to wait behind.
STALE_AFTER_S = 10


def work() -> None:
    """A document waits for its turn."""
    _send("collections_app.tasks.work")


def purge() -> None:
    """Something deleted or replaced waits to be taken away."""
    _send("collections_app.tasks.purge")


def _send(task: str) -> None:
    # Without its broker the schedule does it, within seconds.
    try:
        current_app.send_task(task, retry=False, expires=STALE_AFTER_S)
    except OperationalError as error:
        logger.warning("wake_up_not_sent", task=task, kind=type(error.__cause__ or error).__name__)
