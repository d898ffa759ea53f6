"""A Celery worker with the product's pool. Each task, and each child that ends, writes a line to a file."""

import os
from importlib import import_module
from pathlib import Path

from celery import Celery
from celery.signals import worker_process_shutdown

from config import worker_pool
from config.celery import app as product_app
from tests.config.stack import eventually

worker_pool.IDLE_S = 0.2
OUTPUT_FILE = Path(os.environ["GROWING_FILE"])
# A child that ends waits for this file, so that tasks can be sent to it.
END_FILE = OUTPUT_FILE.with_suffix(".end")

app = Celery("growing", broker=os.environ["GROWING_BROKER"])
for name in ("worker_pool", "task_acks_late", "task_reject_on_worker_lost", "worker_prefetch_multiplier"):
    app.conf[name] = product_app.conf[name]
app.conf.update(task_default_queue=os.environ["GROWING_QUEUE"], task_ignore_result=True)


def write_line(event: str) -> None:
    with OUTPUT_FILE.open("a") as file:
        file.write(f"{event} {os.getpid()}\n")


@app.task
def load_and_record(name: str, library: str) -> None:
    import_module(library)
    write_line(name)


@worker_process_shutdown.connect
def record_end(**_: object) -> None:
    write_line("ends")
    eventually(END_FILE.exists)
