"""The same through RQ's SimpleWorker, which runs one job at a time."""

import json
import sys
import time

from redis import Redis
from rq import Queue, SimpleWorker

done, began = 0, 0.0


def noop() -> None:
    global done, began
    began = began or time.perf_counter()
    done += 1
    if done == jobs:
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)


jobs = int(sys.argv[2])
if __name__ == "__main__":
    sys.modules["noop_tasks"] = sys.modules["__main__"]
    connection = Redis(unix_socket_path=sys.argv[1])
    queue = Queue("bench", connection=connection)
    for first in range(0, jobs, 500):
        queue.enqueue_many([Queue.prepare_data("noop_tasks.noop", result_ttl=0)
                            for _ in range(min(500, jobs - first))])  # fmt: skip
    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="ERROR")
