"""RQ, with its SimpleWorker: one job at a time, without a process for each."""

import signal
import sys

from common import PATH, drive, job, ran, work
from redis import Redis
from rq import Queue, SimpleWorker

connection = Redis(unix_socket_path=PATH)
queue = Queue("bench", connection=connection)


def noop(at: int, text: str) -> None:
    ran(at)


def enqueue(at: int, text: str) -> None:
    queue.enqueue("with_rq.noop", at, text, result_ttl=0)


def enqueue_many(count: int) -> None:
    for first in range(0, count, 500):
        some = range(min(500, count - first))
        queue.enqueue_many([Queue.prepare_data("with_rq.noop", job(), result_ttl=0) for _ in some])


def serve() -> None:
    SimpleWorker([queue], connection=connection).work(max_jobs=work.wanted, logging_level="ERROR")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the worker's own would raise in this program


sys.modules["with_rq"] = sys.modules["__main__"]
drive(enqueue, serve, enqueue_many)
