"""The operations of workers, and about them: a part of the table in `operations.py`."""

from __future__ import annotations

from jqmaster.manifest import parts as p
from jqmaster.manifest.operation import Operation, Reply, Type

# fmt: off
WORK = (
    Operation(
        "register", "", "POST", "/worker", "worker", "Register a worker", Reply("values", ("worker_id",), (201,)),
        (
            p.body("name", p.NAME, required=True),
            p.body("queues", Type("list", 1, 100, schema="Queues"), required=True),
            p.body(
                "url", Type("text", None, 2000),
                "http or https, without user, `?` and `#`. Without it nothing is pushed; the worker picks.",
            ),
            p.body("max_jobs", Type("integer", 1, 1000, schema="MaxJobs"), default=1),
            p.body(
                "secrets", p.SECRETS,
                "24 to 64 bytes each, in base64. What is pushed to the worker is signed with each.",
            ),
            *p.ABOUT_WORKER,
        ),
        errors=("INVALID", "FULL"), by_hand="the log has the new id",
    ),
    Operation(
        "unregister", "", "DELETE", "/worker", "worker", "Unregister a worker", Reply("values", ("released",)),
        (p.header("worker-id", Type("text", 1, 255), "The id from `POST /worker`.", to="worker", required=True),),
        errors=p.MISSING, by_hand="who it is stands in a header",
    ),
    Operation(
        "heartbeat", "", "POST", "/worker/heartbeat", "worker", "Stay alive and renew leases",
        Reply("own", ("jobs", "request")),
        (*p.WORKER, p.body("jobs", Type("list", None, 1000, schema="NotedLeases"))), errors=p.MISSING, hot=True,
        may_be_empty=True, by_hand="jobs are lists or maps, with checkpoints unread",
    ),
    Operation(
        "finish", "", "POST", "/done", "worker", "Report outcomes",
        Reply("own", ("states", "job_ids", "jobs", "next_ms"), (204, 200)), p.WORKER[:1],
        errors=("INVALID", "NOTFOUND", "CONFLICT", "LOST", "CANCELLED"), body="SingleSuccess SingleFailure Outcomes",
        hot=True, by_hand="one outcome or many, with blobs and jobs to enqueue",
    ),
    Operation(
        "pick", "", "POST", "/pick", "worker", "Get jobs to work on", Reply("own", ("jobs", "next_ms")),
        (
            *p.WORKER, *p.PICK,
            p.body("timeout", Type("number", 0, 300), "How many seconds to wait for a job.", to="", default=0),
        ),
        errors=p.REFUSED, hot=True, by_hand="waits; arguments go out unread",
    ),
    Operation(
        "release", "", "POST", "/release", "worker", "Give jobs back", p.STATES_OF_JOBS,
        (
            *p.WORKER,
            p.body("jobs", Type("list", None, 1000, schema="Leases"), required=True),
            p.body("delay", Type("number", 0, 1e10), "Seconds before they are ready."),
            p.body("message", Type("text", None, 65536), "Why, for their history; 200 bytes of it are kept."),
            p.body("hold", Type("map", 1, 10), "Ids of constraints, and for how many seconds the jobs' keys"),
        ),
        errors=p.MISSING, by_hand="jobs are lists or maps",
    ),
    Operation(
        "workers", "", "GET", "/workers", "viewer", "The registered workers, or the others", p.page("workers"),
        (
            p.query("others", p.FLAG, "Those that pull and announce themselves, and for an hour those that died."),
            *p.PAGE,
        ),
    ),
    Operation(
        "workers", "one", "GET", "/worker/{id}", "viewer", "A worker", p.FIRST, (p.path("id", p.NAME, "ids[0]"),),
        errors=p.MISSING,
    ),
    Operation(
        "kick", "worker", "POST", "/worker/{id}/kick", "operator", "Take its jobs from a worker",
        Reply("values", ("kicked", "more")),
        (p.OF_WORKER, p.body("count", p.COUNT, "At most so many.", default=100), p.DELAY),
        errors=p.MISSING, may_be_empty=True,
    ),
    Operation(
        "worker", "quiet", "POST", "/worker/{id}/quiet", "operator", "Have a worker take no more jobs", p.NOTHING,
        (p.OF_WORKER,), {"request": "quiet"}, errors=p.MISSING,
    ),
    Operation(
        "worker", "stop", "POST", "/worker/{id}/stop", "operator", "Have a worker finish what it has, and stop",
        p.NOTHING, (p.OF_WORKER,), {"request": "stop"}, errors=p.MISSING,
    ),
    Operation(
        "worker", "resume", "POST", "/worker/{id}/resume", "operator",
        "Have a worker that was asked to be quiet take jobs again", p.NOTHING, (p.OF_WORKER,),
        {"request": "resume"}, errors=p.MISSING,
    ),
)
# fmt: on
