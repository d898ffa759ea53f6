"""The worker's pool of processes: a child that loaded libraries ends when it is idle, and the parent forks another."""

import sys
from time import monotonic, process_time
from typing import Any

from billiard.pool import EX_RECYCLE
from celery.concurrency import asynpool, prefork

# Short tasks import a few modules, the libraries and the model that load a document more than a hundred.
MAX_NEW_MODULES = 50
IDLE_S = 7.0
# Periodic tasks take less. They do not keep a child that is otherwise idle.
SHORT_TASK_CPU_S = 0.1


class Child(asynpool.Worker):
    """Celery's own limits replace a child right after a task, so each of many documents would load the libraries."""

    def on_loop_start(self, pid: int) -> None:
        super().on_loop_start(pid)
        child: Any = self  # its base declares no types
        module_count_before = len(sys.modules)
        next_task = child.wait_for_job
        cpu_before_s, ends_at = process_time(), 0.0

        def wait_for_job() -> Any:
            nonlocal cpu_before_s, ends_at
            if process_time() - cpu_before_s > SHORT_TASK_CPU_S:
                ends_at = monotonic() + IDLE_S
            # The child has read no task, so none is lost. What the parent sends now, it sends again to another child.
            if len(sys.modules) - module_count_before > MAX_NEW_MODULES:
                idle_left_s = ends_at - monotonic()
                if idle_left_s <= 0 or not child.inq._reader.poll(idle_left_s):
                    sys.exit(EX_RECYCLE)
            task = next_task()
            cpu_before_s = process_time()
            return task

        child.wait_for_job = wait_for_job


class ProcessPool(asynpool.AsynPool):
    Worker = Child


class TaskPool(prefork.TaskPool):
    Pool = ProcessPool
