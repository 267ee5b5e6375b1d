"""Enqueue jobs over HTTP and get their results. Needs a master and a worker with `tasks:jq`.

python enqueue.py [URL of the master]
"""

import sys

from jqmaster import JQ

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400")

job = jq.enqueue("add", [1, 2, 3])
print("add:", job.join(), job.result())

# Many at once: all or none, and far cheaper than one by one.
jobs = jq.enqueue_many(jq.new_job("resize", {"width": width}, priority=-1) for width in (400, 800))
print("resize:", jq.gather(jobs))

job = jq.enqueue("call-partner", {"down_for": 2}, retry_base=0.1)
print("call-partner:", job.result(), "after", job.document()["retry_count"], "retries")

job = jq.enqueue("call-partner", {"closed": True})
print("call-partner:", job.join(), "-", job.document()["message"])

job = jq.enqueue("add", [1], delay=3600)
job.cancel()
print("later:", job.status())
