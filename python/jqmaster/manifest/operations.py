"""The table of operations: each method and path of a master's HTTP API, and what it does to which script.

The server's routes and handlers, the clients, the reference in docs/clients.md and the checks of
openapi/master.yaml read it. So an operation is described here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jqmaster.manifest import parts as p
from jqmaster.manifest.marking import MARKING
from jqmaster.manifest.operation import Operation, Reply, Type
from jqmaster.manifest.operations_work import WORK

# fmt: off
_TABLE = (
    # Jobs.
    Operation(
        "enqueue", "", "POST", "/job", "pusher", "Enqueue one job", Reply("own", ("job_id",), (201, 200)), p.ENQUEUE,
        errors=(*p.REFUSED, "FULL", "NOTDURABLE"), body="NewJob", hot=True,
        by_hand="those of many requests share a call; tokens and trace contexts come in headers",
    ),
    Operation(
        "enqueue", "many", "POST", "/jobs", "pusher", "Enqueue many jobs, all of them or none",
        Reply("own", ("job_ids", "created"), (201, 200)), p.ENQUEUE,
        errors=(*p.REFUSED, "FULL", "NOTDURABLE"), body="NewJobs", hot=True,
        by_hand="a list or a map, an argument of the script for each job and its blob",
    ),
    Operation(
        "get", "", "GET", "/job/{id}", "viewer", "All there is to know about a job", p.DOCUMENT, (p.JOB,),
        errors=p.MISSING, bare=True, hot=True, by_hand="what may be absent is there, as nil", also=p.PUSHER,
    ),
    Operation(
        "cancel", "one", "DELETE", "/job/{id}", "pusher", "Cancel a job", p.NOTHING,
        (
            p.ONE_OF_JOBS,
            p.query("force", p.FLAG, "Cancel a running job although the setting `cancel_running` is off."),
            p.query("dependents", p.DEPENDENTS, "What becomes of jobs that wait for it.", default="leave"),
        ),
        errors=p.REFUSED,
        by_hand="a job that has ended is a conflict, one that was cancelled is none", also=p.OPERATOR,
    ),
    Operation(
        "change", "one", "PATCH", "/job/{id}", "pusher", "Change a job", p.STATE, (p.JOB, *p.CHANGES),
        errors=(*p.REFUSED, "FULL"), also=p.OPERATOR,
    ),
    Operation(
        "result", "", "GET", "/job/{id}/result", "pusher", "The bare result", Reply("own"), (p.JOB,),
        errors=(*p.REFUSED, "EXPIRED"), bare=True, hot=True, by_hand="the body is the value itself", also=p.VIEWER,
    ),
    Operation(
        "watch", "", "GET", "/job/{id}/polling", "viewer", "Wait until a job has ended", Reply("own"),
        (p.JOB, p.query("timeout", Type("number", 0, 300), "How many seconds to wait at most.", to="", default=5)),
        errors=("INVALID", "NOTFOUND", "TIMEOUT"), bare=True, by_hand="waits", also=p.PUSHER,
    ),
    Operation(
        "explain", "", "GET", "/job/{id}/explain", "viewer", "Why a job waits", p.DOCUMENT, (p.JOB,),
        errors=p.MISSING, bare=True, also=p.PUSHER,
        made="What holds it, what is ahead of it, when it may start",
    ),
    Operation(
        "history", "", "GET", "/job/{id}/history", "viewer", "What happened to a job", p.DOCUMENT, (p.JOB,),
        errors=p.MISSING, bare=True, also=p.PUSHER,
        made="`{id, events: [{event, time_ms, …}, …], forgotten}`, oldest first",
    ),
    Operation(
        "track", "events", "GET", "/job/{id}/events", "viewer", "Follow a job",
        Reply("own", (), (200, 204), p.EVENTS.media), (p.ONE_OF_JOBS, p.LAST_EVENT_ID), errors=p.MISSING,
        by_hand="goes on sending", also=p.PUSHER,
    ),
    Operation(
        "track", "one", "POST", "/job/{id}/track", "pusher", "Publish the transitions of a job, or no more", p.STATE,
        (p.ONE_OF_JOBS, p.body("on", p.FLAG, default=True)), errors=p.MISSING, may_be_empty=True, also=p.OPERATOR,
    ),
    Operation(
        "depend", "", "POST", "/job/{id}/depends", "pusher", "Change what a job waits for", p.STATE,
        (p.JOB, *p.LINKS), errors=p.REFUSED, may_be_empty=True, also=p.OPERATOR,
    ),
    Operation(
        "kick", "one", "POST", "/job/{id}/kick", "operator", "Take a running job from its worker", p.STATE,
        (p.ONE_OF_JOBS, p.DELAY), errors=p.REFUSED, may_be_empty=True,
    ),
    Operation(
        "retry", "one", "POST", "/job/{id}/retry", "operator", "Run a job again", p.STATE,
        (p.ONE_OF_JOBS, p.ELSEWHERE), errors=(*p.REFUSED, "FULL"), may_be_empty=True,
    ),
    Operation(
        "discard", "one", "DELETE", "/job/{id}/record", "operator", "Remove all there is of a job", p.STATE,
        (p.ONE_OF_JOBS,), errors=p.REFUSED,
    ),

    # Many jobs.
    Operation(
        "jobs", "", "GET", "/jobs", "viewer", "Find jobs by what they are", p.FOUND, (*p.CONDITIONS, *p.SHOWN, *p.PAGE),
    ),
    Operation(
        "change", "", "POST", "/jobs/change", "pusher", "Change many jobs", p.STATES_OF_JOBS,
        (p.body("jobs", Type("list", 1, 1000), required=True),), errors=("INVALID", "FULL"),
        by_hand="an argument of the script for each job and its blob", also=p.OPERATOR,
    ),
    Operation(
        "cancel", "", "POST", "/jobs/cancel", "pusher", "Cancel many jobs", p.STATES_OF_JOBS, p.CANCEL,
        errors=p.REFUSED, also=p.OPERATOR,
    ),
    Operation(
        "kick", "", "POST", "/jobs/kick", "operator", "Take running jobs from their workers", p.STATES_OF_JOBS,
        (p.body("ids", p.JOB_IDS, required=True), p.DELAY),
    ),
    Operation(
        "retry", "", "POST", "/jobs/retry", "operator", "Run many jobs again", p.STATES_OF_JOBS,
        (*p.STEP, p.ELSEWHERE), errors=("INVALID", "FULL"),
    ),
    Operation(
        "discard", "", "POST", "/jobs/discard", "operator", "Remove all there is of many jobs", p.STATES_OF_JOBS,
        p.STEP,
    ),
    Operation(
        "bulk", "", "POST", "/bulks", "operator", "Have something done to all jobs that fit, however many", p.DOCUMENT,
        p.BULK, errors=("INVALID", "CONFLICT", "FULL"),
    ),
    Operation(
        "bulks", "", "GET", "/bulks", "viewer", "What is done to many jobs", Reply("list", ("bulks",)),
        made="Those under way, and those that ended within an hour, the latest first",
    ),
    Operation(
        "bulk", "stop", "POST", "/bulk/{id}/stop", "operator", "Stop what is done to many jobs", p.DOCUMENT, (p.ID,),
        {"stop": True}, errors=p.MISSING,
    ),
    Operation(
        "free", "", "DELETE", "/unique/{key}", "pusher", "Free a unique key; its job goes on without one",
        Reply("values", ("job_id",)), (p.path("key", p.NAME, "unique", "k"),), errors=p.MISSING, also=p.OPERATOR,
    ),
    Operation(
        "failures", "", "GET", "/failures", "viewer", "What failed for good, by group", p.page("failures"), p.GROUPS,
    ),
    Operation(
        "tags", "", "GET", "/tags", "viewer", "The tags that jobs have",
        Reply("page", ("tags", "cursor"), columns=("tag", "count")),
        (p.query("top", p.COUNT, "So many, and no more; without `cursor` and `count`."), *p.PAGE),
    ),

    *WORK,

    # Queues.
    Operation(
        "queues", "", "GET", "/queues", "viewer", "Queues in order of name", p.page("queues"),
        (*p.STANDING, *p.PAGE),
    ),
    Operation(
        "", "ranking", "GET", "/queues/ranking", "viewer", "Queues in order of how they do", p.RANKING, p.RANKED,
        by_hand="asks for all pages, for all who look",
    ),
    Operation(
        "queues", "one", "GET", "/queue/{name}", "viewer", "A queue's settings and counts", p.FIRST,
        (p.path("name", p.NAME, "names[0]"), *p.STANDING), errors=p.MISSING,
    ),
    Operation(
        "queue", "", "POST", "/queue/{name}", "operator", "Change a queue's settings", p.DOCUMENT,
        (p.QUEUE, *p.QUEUE_CHANGES), errors=("INVALID", "FULL"),
    ),
    Operation(
        "queue", "patch", "PATCH", "/queue/{name}", "operator", "Change a queue's settings (the same as POST)",
        p.DOCUMENT, (p.QUEUE, *p.QUEUE_CHANGES), errors=("INVALID", "FULL"),
    ),
    Operation(
        "queue", "pause", "POST", "/queue/{name}/pause", "operator", "Start no more jobs of a queue", p.DOCUMENT,
        (p.QUEUE,), {"paused": True}, errors=("INVALID", "FULL"),
    ),
    Operation(
        "queue", "resume", "POST", "/queue/{name}/resume", "operator", "Start jobs of a queue again", p.DOCUMENT,
        (p.QUEUE,), {"paused": False}, errors=("INVALID", "FULL"),
    ),
    Operation(
        "forget", "", "DELETE", "/queue/{name}", "operator", "Take away a queue without jobs", p.NOTHING,
        (p.path("name", p.NAME, "queue"),), errors=p.REFUSED, made="With all its settings",
    ),
    Operation(
        "jobs", "queue", "GET", "/queue/{name}/jobs", "viewer", "Jobs of a queue in order", p.FOUND,
        (
            p.path("name", p.NAME, "where.queue"),
            p.query("status", p.STATES, "A state", to="where.status", default="queued"),
            *p.SHOWN, *p.PAGE,
        ),
    ),
    Operation(
        "discard", "queue", "DELETE", "/queue/{name}/jobs", "operator", "Remove jobs of a queue",
        Reply("own", ("discarded", "more")),
        (
            p.path("name", p.NAME, "where.queue"),
            p.query("status", p.STATES, "A state", to="where.status", default="queued,scheduled,blocked,retrying"),
            p.query("timeout", Type("number", 0, 60), "Seconds after which to stop", to="", default=10),
        ),
        fixed={"count": 100}, by_hand="goes on until it is done or the time is up",
    ),
    Operation(
        "kick", "queue", "POST", "/queue/{name}/kick", "operator", "Take a queue's running jobs from their workers",
        Reply("values", ("kicked", "more")),
        (
            p.path("name", p.NAME, "queue"),
            p.body("count", p.COUNT, "At most so many.", default=100), p.DELAY,
        ),
        errors=p.MISSING, may_be_empty=True,
    ),

    # Limits.
    Operation(
        "constraints", "", "GET", "/constraints", "viewer", "Constraints in order of id", p.page("constraints"),
        (p.BUSIEST, *p.PAGE),
    ),
    Operation(
        "constraints", "one", "GET", "/constraint/{id}", "viewer", "A constraint and how much of it is in use",
        p.FIRST, (p.path("id", p.NAME, "ids[0]"), p.BUSIEST), errors=p.MISSING,
    ),
    Operation(
        "constrain", "", "PUT", "/constraint/{id}", "operator", "Create a constraint, or replace it whole",
        p.DOCUMENT, (p.ID, *p.LIMITS), errors=("INVALID", "FULL"),
    ),
    Operation(
        "unconstrain", "", "DELETE", "/constraint/{id}", "operator", "Delete a constraint", p.NOTHING,
        (p.ID,), errors=p.MISSING, made="What it held is free at once",
    ),
    Operation(
        "usage", "", "GET", "/constraint/{id}/usage", "viewer", "The keys of a constraint that are in use",
        p.page("keys"), (p.ID, p.PREFIX, *p.PAGE), errors=p.MISSING,
        made="`by`, `running`, `held`, `opens_ms`, … of each; with `prefix` of those whose value begins so",
    ),
    Operation(
        "hold", "", "POST", "/constraint/{id}/hold", "operator", "Start nothing under a constraint for a while",
        Reply("values", ("until_ms",)), (p.ID, *p.HELD), errors=(*p.MISSING, "FULL"),
    ),

    # Schedules.
    Operation(
        "schedules", "", "GET", "/schedules", "viewer", "Schedules in order of id", p.page("schedules"),
        (p.MOMENTS, p.RUNS, *p.PAGE),
    ),
    Operation(
        "schedules", "one", "GET", "/schedule/{id}", "viewer", "A recurring job", p.FIRST,
        (p.path("id", p.NAME, "ids[0]"), p.MOMENTS, p.RUNS), errors=p.MISSING,
    ),
    Operation(
        "schedule", "", "PUT", "/schedule/{id}", "operator", "Create a recurring job, or replace it whole",
        p.DOCUMENT, (p.ID, *p.RECURRING),
    ),
    Operation(
        "schedule", "run", "POST", "/schedule/{id}/run", "operator", "Make the job of a schedule at once",
        Reply("values", ("job_id", "created")), (p.ID,), {"run": True}, errors=(*p.MISSING, "FULL"),
    ),
    Operation(
        "unschedule", "", "DELETE", "/schedule/{id}", "operator", "Delete a recurring job", p.NOTHING, (p.ID,),
        errors=p.MISSING, made="Jobs that it has made stay",
    ),

    # Webhooks.
    Operation(
        "webhooks", "", "GET", "/webhooks", "operator", "Who is told of ends of jobs", Reply("list", ("webhooks",)),
    ),
    Operation(
        "subscribe", "", "PUT", "/webhook/{id}", "operator", "Create a webhook, or replace it but for its secrets",
        p.DOCUMENT, (p.ID, *p.WEBHOOK), errors=("INVALID", "FULL"),
    ),
    Operation(
        "unsubscribe", "", "DELETE", "/webhook/{id}", "operator", "Delete a webhook", p.NOTHING, (p.ID,),
        errors=p.MISSING, made="It is told nothing more",
    ),

    # The whole of it.
    Operation(
        "", "events", "GET", "/events", "viewer", "Follow everything", p.EVENTS, (p.LAST_EVENT_ID,),
        errors=("INVALID", "CONFLICT"), by_hand="goes on sending",
    ),
    Operation(
        "", "search", "GET", "/search", "viewer", "Find anything by a part of its name, and jobs by a line", p.SEARCHED,
        p.SEARCH, by_hand="asks several scripts",
    ),
    Operation(
        "", "overview", "GET", "/overview", "viewer", "What an operator sees at a glance", p.DOCUMENT,
        by_hand="kept by the master",
    ),
    Operation(
        "", "overview.events", "GET", "/overview/events", "viewer", "Follow the overview", p.EVENTS,
        by_hand="goes on sending",
    ),
    *MARKING,
    Operation(
        "config", "", "GET", "/config", "viewer", "The namespace's settings", p.DOCUMENT,
        (p.query("describe", p.FLAG, "What there is to set, instead."),), by_hand="a description has a name of its own",
    ),
    Operation(
        "config", "set", "PATCH", "/config", "admin", "Change settings, all that are named or none", p.DOCUMENT,
        body="ConfigChange", by_hand="the body is a field of the script's spec",
    ),
    Operation(
        "trail", "", "GET", "/trail", "operator", "What operators changed, newest first", p.page("trail"), p.PAGE,
        made="`time_ms`, `actor`, `what`, `on?`, `change?`, `count?` of each",
        shown="WHEN=time_ms | WHO~1=actor | WHAT=what | ON~1=on | JOBS>=count | CHANGE~2=change\n"
              "nobody has changed anything that is still told",
    ),
    Operation(
        "keys", "", "GET", "/keys", "admin", "The keys of this API, without secrets", p.page("keys"), p.PAGE,
    ),
    Operation(
        "grant", "", "POST", "/keys", "admin", "Create a key; only this answer has it",
        Reply("own", ("key", "id", "name", "roles", "queues", "rate", "created_ms", "expires_ms"), (201,)), p.KEY,
        errors=("INVALID", "FULL"), by_hand="the secret is made here and told once",
    ),
    Operation(
        "revoke", "", "DELETE", "/key/{id}", "admin", "Take a key away", p.NOTHING, (p.ID,), errors=p.MISSING,
        made="Masters refuse it from then on",
    ),
    Operation(
        "export", "", "GET", "/export", "admin", "Everything the namespace has",
        Reply("own", media="application/octet-stream"), by_hand="goes on sending",
    ),
    Operation(
        "import", "", "POST", "/import", "admin",
        "Write records of an export into another namespace of the same Redis", Reply("own", ("keys", "complete")),
        (p.query("namespace", Type("text", 3, 66), "Not set up yet (409).", to="", required=True),),
        errors=("INVALID", "CONFLICT"), by_hand="the body is records; works in another namespace",
    ),
    Operation(
        "", "session", "GET", "/session", None, "Who this is, what they may, and of what master", p.SESSION,
        errors=("UNAUTHORIZED",), by_hand="asks who it is",
    ),
    Operation(
        "", "session.begin", "POST", "/session", None, "Log in with a key, in a browser", p.SESSION,
        (p.body("key", Type("text", 1, 200), required=True),), errors=("INVALID", "UNAUTHORIZED"),
        by_hand="answers with a cookie",
    ),
    Operation(
        "", "session.end", "DELETE", "/session", None, "Log out", p.NOTHING, errors=(), by_hand="takes the cookie back",
    ),
    Operation(
        "", "alive", "GET", "/alive", None, "Whether this server runs", Reply("own", ("status",)), errors=(),
        hot=True, by_hand="asks nobody",
    ),
    Operation(
        "", "health", "GET", "/health", None, "Whether this server can serve",
        Reply("own", ("status", "form")), errors=(), hot=True, by_hand="waits for a second at most",
    ),
    Operation(
        "", "metrics", "GET", "/metrics", "viewer", "Figures for Prometheus", Reply("own", media="text/plain"),
        errors=("NOTACCEPTABLE",), by_hand="of types of its own",
    ),
    Operation(
        "", "openapi", "GET", "/openapi.yaml", None, "This document", Reply("own", media="application/yaml"),
        errors=(), by_hand="a file",
    ),
    Operation(
        "", "openapi.worker", "GET", "/worker/openapi.yaml", None, by_hand="a file", errors=(),
        summary="The API that a worker offers, to which jobs are pushed", reply=Reply("own", media="application/yaml"),
    ),
)
# fmt: on

OPERATIONS: Mapping[str, Operation] = MappingProxyType({one.name: one for one in _TABLE})
