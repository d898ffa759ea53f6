"""On one machine, beat is a fork of the worker's parent, so that both share the memory of loaded code."""

from typing import Any

import structlog
from celery import bootsteps

from config.scheduling import leader_scheduler as leader_scheduler  # loaded before the fork

logger = structlog.get_logger(__name__)

CHECK_INTERVAL_S = 1.0


class BeatRestarter(bootsteps.StartStopStep):
    """Restarts beat when its process has ended, which Celery does not do."""

    requires = ("celery.worker.components:Beat", "celery.worker.components:Timer")

    def start(self, worker: Any) -> None:
        if worker.beat:
            logger.info("beat_started", process=worker.beat.pid)
            worker.timer.call_repeatedly(CHECK_INTERVAL_S, self.check, (worker,))

    def check(self, worker: Any) -> None:
        if not worker.beat.is_alive():
            logger.warning("beat_ended", code=worker.beat.exitcode)
            step = worker.blueprint["celery.worker.components.Beat"]
            step.obj = step.create(worker)
            step.start(worker)
            logger.info("beat_started", process=worker.beat.pid)
