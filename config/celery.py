"""The Celery app. Messages only wake the worker, because all work is stored in the database."""

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_after_setup, setup_logging, worker_before_create_process
from django_structlog.celery.steps import DjangoStructLogInitStep

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("servicebase")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    {
        "beat_scheduler": "config.scheduling.leader_scheduler.LeaderScheduler",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "result_expires": None,  # otherwise, Celery schedules the deletion of results
        # Without the second setting, the task of a killed child would still be acknowledged.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        "task_soft_time_limit": 240,
        "task_time_limit": 300,
        "worker_pool": "config.worker_pool:TaskPool",
        "worker_max_tasks_per_child": 200,
        "worker_soft_shutdown_timeout": 8,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_default_queue": "servicebase",
        "timezone": "UTC",
        "broker_transport_options": {
            "visibility_timeout": 900,  # longer than the longest task
            # With these two settings, a lost message is delivered again after 10 s instead of 90 s.
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,
        },
    }
)
app.autodiscover_tasks()
assert app.steps is not None
app.steps["worker"].add(DjangoStructLogInitStep)
app.steps["worker"].add("config.scheduling.embedded_beat:BeatRestarter")


@celeryd_after_setup.connect
@worker_before_create_process.connect
def share_memory(**_: Any) -> None:
    """Freeze all loaded objects before beat and other children are forked: the garbage collector would write to their
    pages, which the processes would then no longer share."""
    gc.collect()
    gc.freeze()


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """With this receiver, Celery does not replace the logging that Django has configured."""
