"""Wakes the worker. The work itself is a row in the database."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

logger = structlog.get_logger(__name__)

# A wake-up that nobody took in this time says nothing new: the schedule sends another. So a hundred uploads leave no
# hundred messages for other work to wait behind.
STALE_AFTER_S = 10


def wake(task: str) -> None:
    """Without its broker the schedule does it, within seconds; indexes within a minute."""
    try:
        current_app.send_task(task, retry=False, expires=STALE_AFTER_S)
    except OperationalError as error:
        logger.warning("wake_up_not_sent", task=task, kind=type(error.__cause__ or error).__name__)
