"""Wakes the worker. The work itself is stored in the database."""

import structlog
from celery import current_app
from kombu.exceptions import OperationalError

logger = structlog.get_logger(__name__)

# Wake-ups expire, because the schedule repeats them. Otherwise a hundred uploads would queue a hundred messages ahead
# of other work.
MESSAGE_EXPIRY_S = 10


def wake_worker(task: str) -> None:
    """Send a task to the worker. If the broker is down, the schedule starts it in seconds, or a minute for indexes."""
    try:
        current_app.send_task(task, retry=False, expires=MESSAGE_EXPIRY_S)
    except OperationalError as error:
        logger.warning("wake_up_not_sent", task=task, kind=type(error.__cause__ or error).__name__)
