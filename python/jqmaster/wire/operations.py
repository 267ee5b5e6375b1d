"""The table of operations: each method and path of a master's HTTP API, and what it does to which script.

The server's routes and handlers, the clients, the reference in docs/clients.md and the checks of
openapi/master.yaml read it. So an operation is described here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jqmaster.wire import fields as f
from jqmaster.wire.operation import Operation, Reply, Type

# fmt: off
_TABLE = (
    # Jobs.
    Operation(
        "enqueue", "", "POST", "/job", "pusher", "Enqueue one job", Reply("own", ("job_id",), (201, 200)), f.ENQUEUE,
        errors=(*f.REFUSED, "FULL"), body="NewJob", hot=True,
        by_hand="those of many requests share a call; tokens and trace contexts come in headers",
    ),
    Operation(
        "enqueue", "many", "POST", "/jobs", "pusher", "Enqueue many jobs, all of them or none",
        Reply("own", ("job_ids", "created"), (201, 200)), f.ENQUEUE, errors=(*f.REFUSED, "FULL"), body="NewJobs",
        hot=True, by_hand="a list or a map, an argument of the script for each job and its blob",
    ),
    Operation(
        "get", "", "GET", "/job/{id}", "viewer", "All there is to know about a job", f.DOCUMENT, (f.JOB,),
        errors=f.MISSING, bare=True, hot=True, by_hand="what may be absent is there, as nil",
    ),
    Operation(
        "cancel", "one", "DELETE", "/job/{id}", "pusher", "Cancel a job", f.NOTHING,
        (
            f.ONE_OF_JOBS,
            f.query("force", f.FLAG, "Cancel a running job although the setting `cancel_running` is off."),
            f.query("dependents", f.DEPENDENTS, "What becomes of jobs that wait for it.", default="leave"),
        ),
        errors=f.REFUSED,
        by_hand="a job that has ended is a conflict, one that was cancelled is none",
    ),
    Operation(
        "change", "one", "PATCH", "/job/{id}", "pusher", "Change a job", f.STATE, (f.JOB, *f.CHANGES),
        errors=f.REFUSED,
    ),
    Operation(
        "result", "", "GET", "/job/{id}/result", "pusher", "The bare result", Reply("own"), (f.JOB,),
        errors=f.MISSING, bare=True, hot=True, by_hand="the body is the value itself",
    ),
    Operation(
        "watch", "", "GET", "/job/{id}/polling", "viewer", "Wait until a job has ended", Reply("own"),
        (
            f.JOB,
            f.query("timeout", Type("number", 0, 300), "How many seconds to wait at most.", to="", default=5),
        ),
        errors=("INVALID", "NOTFOUND", "TIMEOUT"), bare=True, by_hand="waits",
    ),
    Operation(
        "explain", "", "GET", "/job/{id}/explain", "viewer", "Why a job waits", f.DOCUMENT, (f.JOB,),
        errors=f.MISSING, bare=True,
    ),
    Operation(
        "history", "", "GET", "/job/{id}/history", "viewer", "What happened to a job", f.DOCUMENT, (f.JOB,),
        errors=f.MISSING, bare=True,
    ),
    Operation(
        "track", "events", "GET", "/job/{id}/events", "viewer", "Follow a job",
        Reply("own", (), (200, 204), f.EVENTS.media), (f.ONE_OF_JOBS, f.LAST_EVENT_ID), errors=f.MISSING,
        by_hand="goes on sending",
    ),
    Operation(
        "track", "one", "POST", "/job/{id}/track", "pusher", "Publish the transitions of a job, or no more", f.STATE,
        (f.ONE_OF_JOBS, f.body("on", f.FLAG, default=True)), errors=f.MISSING, may_be_empty=True,
    ),
    Operation(
        "depend", "", "POST", "/job/{id}/depends", "pusher", "Change what a job waits for", f.STATE,
        (f.JOB, *f.LINKS), errors=f.REFUSED, may_be_empty=True,
    ),
    Operation(
        "kick", "one", "POST", "/job/{id}/kick", "operator", "Take a running job from its worker", f.STATE,
        (f.ONE_OF_JOBS, f.DELAY), errors=f.REFUSED, may_be_empty=True,
    ),
    Operation(
        "retry", "one", "POST", "/job/{id}/retry", "operator", "Run a job again", f.STATE, (f.ONE_OF_JOBS,),
        errors=f.REFUSED,
    ),
    Operation(
        "discard", "one", "DELETE", "/job/{id}/record", "operator", "Remove all there is of a job", f.STATE,
        (f.ONE_OF_JOBS,), errors=f.REFUSED,
    ),

    # Many jobs.
    Operation(
        "jobs", "", "GET", "/jobs", "viewer", "Find jobs by what they are", f.page("jobs"),
        (*f.CONDITIONS, f.NEWEST, f.BRIEF, *f.PAGE),
    ),
    Operation(
        "change", "", "POST", "/jobs/change", "pusher", "Change many jobs", f.STATES_OF_JOBS,
        (f.body("jobs", Type("list", 1, 1000), required=True),),
        by_hand="an argument of the script for each job and its blob",
    ),
    Operation(
        "cancel", "", "POST", "/jobs/cancel", "pusher", "Cancel many jobs", f.STATES_OF_JOBS, f.CANCEL,
        errors=("INVALID", "CONFLICT"),
    ),
    Operation(
        "kick", "", "POST", "/jobs/kick", "operator", "Take running jobs from their workers", f.STATES_OF_JOBS,
        (f.body("ids", f.JOB_IDS, required=True), f.DELAY),
    ),
    Operation(
        "retry", "", "POST", "/jobs/retry", "operator", "Run many jobs again", f.STATES_OF_JOBS, f.STEP,
    ),
    Operation(
        "discard", "", "POST", "/jobs/discard", "operator", "Remove all there is of many jobs", f.STATES_OF_JOBS,
        f.STEP,
    ),
    Operation(
        "failures", "", "GET", "/failures", "viewer", "What failed for good, by group", f.page("failures"), f.PAGE,
    ),
    Operation(
        "tags", "", "GET", "/tags", "viewer", "The tags that jobs have",
        Reply("page", ("tags", "cursor"), columns=("tag", "count")),
        (f.query("top", f.COUNT, "So many, and no more; without `cursor` and `count`."), *f.PAGE),
    ),

    # Workers.
    Operation(
        "register", "", "POST", "/worker", "worker", "Register a worker", Reply("values", ("worker_id",), (201,)),
        (
            f.body("name", f.NAME, required=True),
            f.body("queues", Type("list", 1, 100, schema="Queues"), required=True),
            f.body("url", f.TEXT, "http or https. Without it nothing is pushed; the worker picks."),
            f.body("max_jobs", Type("integer", 1, 1000, schema="MaxJobs"), default=1),
        ),
        errors=("INVALID", "FULL"), by_hand="the log has the new id",
    ),
    Operation(
        "unregister", "", "DELETE", "/worker", "worker", "Unregister a worker", Reply("values", ("released",)),
        (f.header("worker-id", Type("text", 1, 255), "The id from `POST /worker`.", to="worker", required=True),),
        errors=f.MISSING, by_hand="who it is stands in a header",
    ),
    Operation(
        "heartbeat", "", "POST", "/worker/heartbeat", "worker", "Stay alive and renew leases",
        Reply("own", ("jobs", "request")),
        (*f.WORKER, f.body("jobs", Type("list", None, 1000, schema="NotedLeases"))), errors=f.MISSING, hot=True,
        may_be_empty=True, by_hand="jobs are lists or maps, with checkpoints unread",
    ),
    Operation(
        "finish", "", "POST", "/done", "worker", "Report outcomes",
        Reply("own", ("states", "job_ids", "jobs", "next_ms"), (204, 200)), f.WORKER[:1],
        errors=("INVALID", "NOTFOUND", "CONFLICT", "LOST", "CANCELLED"), body="SingleSuccess SingleFailure Outcomes",
        hot=True, by_hand="one outcome or many, with blobs and jobs to enqueue",
    ),
    Operation(
        "pick", "", "POST", "/pick", "worker", "Get jobs to work on", Reply("own", ("jobs", "next_ms")),
        (
            *f.WORKER, *f.PICK,
            f.body("timeout", Type("number", 0, 300), "How many seconds to wait for a job.", to="", default=0),
        ),
        errors=f.REFUSED, hot=True, by_hand="waits; arguments go out unread",
    ),
    Operation(
        "release", "", "POST", "/release", "worker", "Give jobs back", f.STATES_OF_JOBS,
        (
            *f.WORKER,
            f.body("jobs", Type("list", None, 1000, schema="Leases"), required=True),
            f.body("delay", Type("number", 0, 1e10), "Seconds before they are ready."),
            f.body("message", Type("text", None, 65536), "Why, for their history; 200 bytes of it are kept."),
            f.body("hold", Type("map", 1, 10), "Ids of constraints, and for how many seconds the jobs' keys"),
        ),
        errors=f.MISSING, by_hand="jobs are lists or maps",
    ),
    Operation("workers", "", "GET", "/workers", "viewer", "The registered workers", f.page("workers"), f.PAGE),
    Operation(
        "worker", "quiet", "POST", "/worker/{id}/quiet", "operator", "Have a worker take no more jobs", f.NOTHING,
        (f.path("id", f.NAME, "worker"),), {"request": "quiet"}, errors=f.MISSING,
    ),
    Operation(
        "worker", "stop", "POST", "/worker/{id}/stop", "operator", "Have a worker finish what it has, and stop",
        f.NOTHING, (f.path("id", f.NAME, "worker"),), {"request": "stop"}, errors=f.MISSING,
    ),
    Operation(
        "worker", "resume", "POST", "/worker/{id}/resume", "operator",
        "Have a worker that was asked to be quiet take jobs again", f.NOTHING, (f.path("id", f.NAME, "worker"),),
        {"request": "resume"}, errors=f.MISSING, by_hand="its long polls look again",
    ),

    # Queues.
    Operation("queues", "", "GET", "/queues", "viewer", "Queues in order of name", f.page("queues"), f.PAGE),
    Operation(
        "queues", "one", "GET", "/queue/{name}", "viewer", "A queue's settings and counts", f.FIRST,
        (f.path("name", f.NAME, "names[0]"),), errors=f.MISSING,
    ),
    Operation(
        "queue", "", "POST", "/queue/{name}", "operator", "Change a queue's settings", f.DOCUMENT,
        (f.QUEUE, *f.QUEUE_CHANGES),
    ),
    Operation(
        "queue", "patch", "PATCH", "/queue/{name}", "operator", "Change a queue's settings (the same as POST)",
        f.DOCUMENT, (f.QUEUE, *f.QUEUE_CHANGES),
    ),
    Operation(
        "queue", "pause", "POST", "/queue/{name}/pause", "operator", "Start no more jobs of a queue", f.DOCUMENT,
        (f.QUEUE,), {"paused": True},
    ),
    Operation(
        "queue", "resume", "POST", "/queue/{name}/resume", "operator", "Start jobs of a queue again", f.DOCUMENT,
        (f.QUEUE,), {"paused": False},
    ),
    Operation(
        "forget", "", "DELETE", "/queue/{name}", "operator", "Take away a queue without jobs", f.NOTHING,
        (f.path("name", f.NAME, "queue"),), errors=f.REFUSED,
    ),
    Operation(
        "jobs", "queue", "GET", "/queue/{name}/jobs", "viewer", "Jobs of a queue in order", f.page("jobs"),
        (
            f.path("name", f.NAME, "where.queue"),
            f.query("status", f.STATES, "A state", to="where.status", default="queued"),
            f.NEWEST, f.BRIEF, *f.PAGE,
        ),
    ),
    Operation(
        "discard", "queue", "DELETE", "/queue/{name}/jobs", "operator", "Remove jobs of a queue",
        Reply("own", ("discarded", "more")),
        (
            f.path("name", f.NAME, "where.queue"),
            f.query("status", f.STATES, "A state", to="where.status", default="queued,scheduled,blocked,retrying"),
            f.query("timeout", Type("number", 0, 60), "Seconds after which to stop", to="", default=10),
        ),
        by_hand="goes on until it is done or the time is up",
    ),
    Operation(
        "kick", "queue", "POST", "/queue/{name}/kick", "operator", "Take a queue's running jobs from their workers",
        Reply("values", ("kicked", "more")),
        (
            f.path("name", f.NAME, "queue"),
            f.body("count", f.COUNT, "At most so many.", default=100), f.DELAY,
        ),
        may_be_empty=True,
    ),

    # Limits.
    Operation(
        "constraints", "", "GET", "/constraints", "viewer", "Constraints in order of id", f.page("constraints"),
        f.PAGE,
    ),
    Operation(
        "constraints", "one", "GET", "/constraint/{id}", "viewer", "A constraint and how much of it is in use",
        f.FIRST, (f.path("id", f.NAME, "ids[0]"),), errors=f.MISSING,
    ),
    Operation(
        "constrain", "", "PUT", "/constraint/{id}", "operator", "Create a constraint, or replace it whole",
        f.DOCUMENT, (f.ID, *f.LIMITS), errors=("INVALID", "FULL"),
    ),
    Operation(
        "unconstrain", "", "DELETE", "/constraint/{id}", "operator", "Delete a constraint", f.NOTHING,
        (f.ID,), errors=f.MISSING,
    ),
    Operation(
        "usage", "", "GET", "/constraint/{id}/usage", "viewer", "The keys of a constraint that are in use",
        f.page("keys"), (f.ID, *f.PAGE), errors=f.MISSING,
    ),
    Operation(
        "hold", "", "POST", "/constraint/{id}/hold", "operator", "Start nothing under a constraint for a while",
        Reply("values", ("until_ms",)), (f.ID, *f.HELD), errors=f.MISSING,
    ),

    # Schedules.
    Operation(
        "schedules", "", "GET", "/schedules", "viewer", "Schedules in order of id", f.page("schedules"),
        (f.MOMENTS, *f.PAGE),
    ),
    Operation(
        "schedules", "one", "GET", "/schedule/{id}", "viewer", "A recurring job", f.FIRST,
        (f.path("id", f.NAME, "ids[0]"), f.MOMENTS), errors=f.MISSING,
    ),
    Operation(
        "schedule", "", "PUT", "/schedule/{id}", "operator", "Create a recurring job, or replace it whole",
        f.DOCUMENT, (f.ID, *f.RECURRING),
    ),
    Operation(
        "unschedule", "", "DELETE", "/schedule/{id}", "operator", "Delete a recurring job", f.NOTHING, (f.ID,),
        errors=f.MISSING,
    ),

    # The whole of it.
    Operation(
        "", "events", "GET", "/events", "viewer", "Follow everything", f.EVENTS, (f.LAST_EVENT_ID,),
        errors=("INVALID", "CONFLICT"), by_hand="goes on sending",
    ),
    Operation(
        "", "overview", "GET", "/overview", "viewer", "What an operator sees at a glance", f.DOCUMENT,
        by_hand="kept by the master",
    ),
    Operation(
        "", "overview.events", "GET", "/overview/events", "viewer", "Follow the overview", f.EVENTS,
        by_hand="goes on sending",
    ),
    Operation(
        "stats", "", "GET", "/stats", "viewer", "What happened, by minute, hour or day", Reply("list", ("stats",)),
        f.PERIOD,
    ),
    Operation(
        "stats", "series", "GET", "/stats/series", "viewer", "What happened to each pair of queue and name",
        f.page("series"), (*f.PERIOD, *f.PAGE), {"series": True},
    ),
    Operation(
        "config", "", "GET", "/config", "viewer", "The namespace's settings", f.DOCUMENT,
        (f.query("describe", f.FLAG, "What there is to set, instead."),),
        by_hand="a description has a name of its own",
    ),
    Operation(
        "config", "set", "PATCH", "/config", "admin", "Change settings, all that are named or none", f.DOCUMENT,
        body="ConfigChange", by_hand="the body is a field of the script's spec",
    ),
    Operation(
        "export", "", "GET", "/export", "admin", "Everything the namespace has",
        Reply("own", media="application/octet-stream"), by_hand="goes on sending",
    ),
    Operation(
        "import", "", "POST", "/import", "admin",
        "Write records of an export into another namespace of the same Redis", Reply("own", ("keys", "complete")),
        (f.query("namespace", Type("text", 3, 66), "Not set up yet (409).", to="", required=True),),
        errors=("INVALID", "CONFLICT"),
        by_hand="the body is records; works in another namespace",
    ),
    Operation(
        "", "alive", "GET", "/alive", None, "Whether this server runs", Reply("own", ("status",)), errors=(),
        hot=True, by_hand="asks nobody",
    ),
    Operation(
        "", "health", "GET", "/health", None, "Whether this server can serve", Reply("own", ("status", "form")),
        errors=(), hot=True, by_hand="waits for a second at most",
    ),
    Operation(
        "", "metrics", "GET", "/metrics", "viewer", "Figures for Prometheus", Reply("own", media="text/plain"),
        errors=("NOTACCEPTABLE", "UNSUPPORTED"), by_hand="of types of its own",
    ),
    Operation(
        "", "openapi", "GET", "/openapi.yaml", None, "This document", Reply("own", media="application/yaml"),
        errors=(), by_hand="a file",
    ),
    Operation(
        "", "openapi.worker", "GET", "/worker/openapi.yaml", None,
        "The API that a worker offers, to which jobs are pushed", Reply("own", media="application/yaml"), errors=(),
        by_hand="a file",
    ),
)
# fmt: on

OPERATIONS: Mapping[str, Operation] = MappingProxyType({one.name: one for one in _TABLE})
