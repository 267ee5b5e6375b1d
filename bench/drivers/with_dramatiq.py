"""dramatiq, with threads."""

import threading
from typing import Any

import dramatiq
from common import PATH, SLOTS, drive, ran, work
from dramatiq.brokers.redis import RedisBroker


def noop(at: int, text: str) -> None:
    ran(at)


def declared() -> tuple[RedisBroker, Any]:
    broker = RedisBroker(url=f"unix://{PATH}")
    return broker, dramatiq.actor(noop, broker=broker)


def serve() -> None:
    stop = threading.Event()
    work.stop = stop.set
    worker = dramatiq.Worker(declared()[0], worker_threads=SLOTS)
    worker.start()
    stop.wait()
    worker.stop()


drive(declared()[1].send, serve)
