"""Handlers of what the master itself keeps or puts together, mostly once for all who look."""

from __future__ import annotations

from collections import Counter

from jqmaster.engine import packform
from jqmaster.engine.alerts import verdict
from jqmaster.server.figures import OPEN, STATES
from jqmaster.server.http.own import own
from jqmaster.server.master import Master
from jqmaster.server.message import Reply, Request

_TOP = 30


@own(
    "overview",
    """What an operator sees at a glance: what is wrong, and counts. Of a key that is bound to queues, of these.
@reply Overview
@errors UNAVAILABLE
@role viewer
@bound any
@http GET /overview""",
)
async def get_overview(master: Master, request: Request) -> Reply:
    """`GET /overview`: alerts and counts, ten seconds old at most."""
    look, who = await master.figures.look(), request.who
    alerts, queues, workers, sums = look.alerts, look.queues, look.workers, look.sums
    if who.queues is not None:
        alerts = [alert for alert in alerts if "queue" in alert and who.may_use(alert["queue"])]
        queues = [queue for queue in queues if who.may_use(queue["name"])]
        workers = [worker for worker in workers if any(who.may_use(queue) for queue in worker["queues"])]
        sums = Counter({field: sum(queue[field] for queue in queues) for field in (*STATES, "paused")})
    told = sorted(queues, key=lambda queue: (-sum(queue[state] for state in OPEN), -queue["error"], queue["name"]))
    waiting = [queue for queue in queues if queue.get("oldest_ready_ms") and not queue["paused"]]
    oldest = min(waiting, key=lambda queue: (queue["oldest_ready_ms"], queue["name"]), default=None)
    slots = [worker for worker in workers if worker.get("url") or worker.get("host")]
    answer = {
        "now_ms": look.now_ms,
        "age_ms": round(look.age_s * 1000),
        "verdict": verdict(alerts),
        "alerts": alerts,
        "totals": {state: sums[state] for state in STATES},
        "queues": {
            "count": len(queues) if who.queues is not None or look.count is None else look.count,
            "more": look.count is None, "paused": sums["paused"], "age_ms": round(look.round_s * 1000),
            "top": [queue["name"] for queue in told[:_TOP]],
        },
        "oldest": oldest and {"queue": oldest["name"], "ready_ms": oldest["oldest_ready_ms"]},
        "workers": {
            "count": len(workers), "held": sum(worker["held"] for worker in workers),
            "unreachable": sum(worker["state"] == "unreachable" for worker in workers),
            "slots": sum(worker["max_jobs"] or 0 for worker in slots),
            "slots_held": sum(worker["held"] for worker in slots),
        },
    }  # fmt: skip
    return Reply(200, packform.pack(answer))
