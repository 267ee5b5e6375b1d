"""Recurring jobs: made by the engine, one for each moment, however many masters and workers there are.

python schedules.py [URL of the master]
"""

import sys
from datetime import datetime
from zoneinfo import ZoneInfo

from jqmaster import JQ

jq = JQ(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400")

# At half past two on working days, by the clocks of Berlin.
jq.repeat("nightly", jq.new_job("add", [1, 2]), cron="30 2 * * mon-fri", timezone="Europe/Berlin")
[nightly] = jq.operations.schedules(["nightly"], next=5).documents
moments = [datetime.fromtimestamp(moment / 1000, ZoneInfo("Europe/Berlin")) for moment in nightly["next"]]
print("nightly:", ", ".join(sorted({f"{moment:%H:%M}" for moment in moments})))
print("on weekends:", any(moment.weekday() > 4 for moment in moments))

# Every tenth of a second.
jq.repeat("often", jq.new_job("add", [20, 22]), every=0.1)
while jq.operations.schedules(["often"]).documents[0]["made"] < 3:
    pass
for schedule in list(jq.each("schedules")):
    jq.operations.unschedule(schedule["id"])
often = [job["id"] for job in jq.jobs(name="add", brief=True) if job.get("schedule") == "often"]
for job_id in often[:3]:
    handle = jq.handle(job_id)
    print("often:", handle.join(), handle.result())
