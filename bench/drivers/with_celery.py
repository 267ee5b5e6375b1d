"""Celery, with the pool "solo": one job at a time in the worker's own process."""

import warnings

from celery import Celery
from celery.apps.worker import Worker
from celery.exceptions import WorkerShutdown
from celery.worker import state
from common import PATH, drive, ran, work

warnings.simplefilter("ignore")  # about root
app = Celery("bench", broker=f"redis+socket://{PATH}", set_as_current=True)
app.conf.update(
    task_ignore_result=True,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(at: int, text: str) -> None:
    ran(at)


def stop() -> None:
    state.should_stop = 0


def serve() -> None:
    state.should_stop = None
    work.stop = stop
    try:
        Worker(app=app, pool_cls="solo", loglevel="ERROR", quiet=True).start()
    except (SystemExit, WorkerShutdown):
        pass


drive(noop.delay, serve)
