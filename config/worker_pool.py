"""The worker's pool of processes: a child that loaded libraries ends when it is idle, and the parent forks another."""

import sys
from time import monotonic, process_time
from typing import Any

from billiard.pool import EX_RECYCLE
from celery.concurrency import asynpool, prefork

# Short tasks import a few modules. Loading a document imports more than a hundred, for parsers and the model.
MAX_NEW_MODULES = 50
IDLE_S = 7.0
# Periodic tasks take less CPU time, and a child that runs only those counts as idle.
SHORT_TASK_CPU_S = 0.1


class Child(asynpool.Worker):
    """Ends when idle. Celery's limits would end it right after a task, so each document would load the libraries."""

    def on_loop_start(self, pid: int) -> None:
        super().on_loop_start(pid)
        child: Any = self  # the base class declares no types
        module_count_before = len(sys.modules)
        wait_for_task = child.wait_for_job
        cpu_before_s, idle_until = process_time(), 0.0

        def wait_for_job() -> Any:
            nonlocal cpu_before_s, idle_until
            if process_time() - cpu_before_s > SHORT_TASK_CPU_S:
                idle_until = monotonic() + IDLE_S
            # The child has read no task, so none is lost. What the parent sends now, it sends again to another child.
            if len(sys.modules) - module_count_before > MAX_NEW_MODULES:
                remaining_idle_s = idle_until - monotonic()
                if remaining_idle_s <= 0 or not child.inq._reader.poll(remaining_idle_s):
                    sys.exit(EX_RECYCLE)
            task = wait_for_task()
            cpu_before_s = process_time()
            return task

        child.wait_for_job = wait_for_job


class ProcessPool(asynpool.AsynPool):
    Worker = Child


class TaskPool(prefork.TaskPool):
    Pool = ProcessPool
