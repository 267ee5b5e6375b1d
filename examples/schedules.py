"""Recurring jobs: made by the engine, one for each moment, however many masters and workers there are.

python schedules.py [URL of the master]
"""

import sys
from datetime import UTC, datetime

from jqmaster.client import Client

with Client(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400") as jq:
    # At half past two on working days, by a clock that is two hours ahead of UTC.
    jq.schedule("nightly", {"name": "add"}, [1, 2], cron="30 2 * * mon-fri", utc_offset=120)
    nightly = jq.get_schedule("nightly", next=5)
    moments = [datetime.fromtimestamp(moment / 1000, UTC) for moment in nightly["next"]]
    print("nightly:", ", ".join(sorted({f"{moment:%H:%M}" for moment in moments})), "UTC")
    print("on weekends:", any(moment.weekday() > 4 for moment in moments))

    # Every tenth of a second, three times.
    jq.schedule("often", {"name": "add", "keep_result": True}, [20, 22], every=0.1, limit=3)
    while jq.get_schedule("often")["made"] < 3:
        pass
    for job in jq.jobs(name="add", brief=True):
        if job.get("schedule") == "often":
            print("often:", jq.wait(job["id"])["status"], jq.result(job["id"]))

    # The third time, and never again.
    print("one more:", "next_ms" in jq.get_schedule("often"))
    for schedule in jq.schedules():
        jq.unschedule(schedule["id"])
