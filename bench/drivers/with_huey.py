"""huey, with threads."""

import threading

from common import PATH, SLOTS, drive, ran, work
from huey import RedisHuey

huey = RedisHuey("bench", url=f"unix://{PATH}", results=False)


@huey.task()
def noop(at: int, text: str) -> None:
    ran(at)


def serve() -> None:
    stop = threading.Event()
    work.stop = stop.set
    consumer = huey.create_consumer(workers=SLOTS, worker_type="thread", periodic=False)
    consumer.start()
    stop.wait()
    consumer.stop(graceful=True)


drive(noop, serve)
