"""Enqueue jobs over HTTP and get their results. Needs a master and a worker with `tasks:FUNCTIONS`.

python enqueue.py [URL of the master]
"""

import sys

from jqmaster.client import Client

with Client(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400") as jq:
    job = jq.enqueue("add", [1, 2, 3], keep_result=True)
    print("add:", jq.wait(job)["status"], jq.result(job))

    # Many at once: all or none, and far cheaper than one by one.
    jobs = jq.enqueue_many(
        {"name": "resize", "argument": {"width": width}, "keep_result": True, "priority": -1}
        for width in (400, 800)
    )
    for job in jobs:
        jq.wait(job)
    print("resize:", [jq.result(job) for job in jobs])

    job = jq.enqueue("call-partner", {"down_for": 2}, retry_base=0.1, keep_result=True)
    print("call-partner:", jq.wait(job)["retry_count"], "retries,", jq.result(job))

    job = jq.enqueue("call-partner", {"closed": True})
    print("call-partner:", jq.wait(job)["status"], "-", jq.get(job)["message"])

    job = jq.enqueue("add", [1], delay=3600)
    jq.cancel(job)
    print("later:", jq.get(job)["status"])
