"""Recurring jobs: made by the engine, one for each moment, however many masters and workers there are.

python schedules.py [URL of the master]
"""

import sys
from datetime import UTC, datetime

from jqmaster import JQ

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400")

# At half past two on working days, by a clock that is two hours ahead of UTC.
jq.repeat("nightly", jq.new_job("add", [1, 2]), cron="30 2 * * mon-fri", utc_offset=120)
[nightly] = jq.operations.schedules(["nightly"], next=5).documents
moments = [datetime.fromtimestamp(moment / 1000, UTC) for moment in nightly["next"]]
print("nightly:", ", ".join(sorted({f"{moment:%H:%M}" for moment in moments})), "UTC")
print("on weekends:", any(moment.weekday() > 4 for moment in moments))

# Every tenth of a second, three times.
jq.repeat("often", jq.new_job("add", [20, 22]), every=0.1, limit=3)
while jq.operations.schedules(["often"]).documents[0]["made"] < 3:
    pass
for job in jq.jobs(name="add", brief=True):
    if job.get("schedule") == "often":
        handle = jq.handle(job["id"])
        print("often:", handle.join(), handle.result())

# The third time, and never again.
print("one more:", "next_ms" in jq.operations.schedules(["often"]).documents[0])
for schedule in list(jq.each("schedules")):
    jq.operations.unschedule(schedule["id"])
