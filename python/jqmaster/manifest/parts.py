"""Parts of which operations are made: types, fields, answers."""

from __future__ import annotations

from functools import partial
from typing import Any

from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.fields import Field as JobField
from jqmaster.manifest.operation import Field, Place, Reply, Role, Type

NIL = b"\xc0"

# Types.
TEXT = Type("text")
NAME = Type("text", 1, 255, schema="Name")
QUEUE_NAME = Type("text", 1, 255, schema="QueueOfJob")
JOB_ID = Type("text", 1)
WHERE = Type("map", schema="Where")
JOB_IDS = Type("list", 1, 1000, schema="JobIds")
COUNT = Type("integer", 1, 1000)
MOMENT = Type("moment", 0, schema="Moment")
FLAG = Type("flag")
STATES = Type("states")
VALUE = Type("value", schema="Value")
SECRETS = Type("list", 1, 2)
DEPENDENTS = Type("text", choices=("leave", "cancel", "refuse"))

# Codes of errors that many have.
MISSING = ("INVALID", "NOTFOUND")
REFUSED = (*MISSING, "CONFLICT")


def _field(
    place: Place,
    name: str,
    type_: Type,
    meaning: str = "",
    *,
    to: str | None = None,
    required: bool = False,
    default: Any = None,
) -> Field:
    """A part of a request; in the script's spec it has the same name unless told."""
    return Field(name, type_, place, name if to is None else to, required, default, meaning)


query, body, header = partial(_field, "query"), partial(_field, "body"), partial(_field, "header", to="")


def path(name: str, type_: Type, to: str, example: str = "a") -> Field:
    """A part of the path."""
    return Field(name, type_, "path", to, required=True, example=example)


# Fields that many have.
PAGE = (query("cursor", Type("cursor"), "Where to go on, from the page before."), query("count", COUNT, default=100))
LAST_EVENT_ID = header("Last-Event-ID", TEXT, "The `id` of the last event that was seen.")
SHOWN = (
    query("newest", FLAG, "The order within a state, a tag or a group turned round."),
    query("recent", FLAG, "What runs, then what ended last, then what waits, over all queues."),
    query("brief", FLAG, "Without argument, result and error."),
    query("argument_max", Type("integer", 0, 65536), "With `brief`: arguments of at most so many bytes all the same."),
    query("looked", FLAG, "With the number of jobs that were looked at."),
)
DELAY = body("delay", Type("number", 0, 1e10, schema="Duration"))

# For whom an operation is beside its role.
VIEWER: tuple[Role, ...] = ("viewer",)
PUSHER: tuple[Role, ...] = ("pusher",)
OPERATOR: tuple[Role, ...] = ("operator",)

# Answers that many have.
NOTHING = Reply("nothing", statuses=(204,))
SESSION = Reply("own", ("name", "roles", "queues", "asks", "session", "master"))
DOCUMENT = Reply("document")
FIRST = Reply("first")
STATE = Reply("state", ("status",))
STATES_OF_JOBS = Reply("states", ("jobs",))
EVENTS = Reply("own", media="text/event-stream")


def _change(field: JobField) -> Field:
    """A field of a job, as one that changes."""
    if field.kind == "names":
        return body(field.name, Type("list", None, field.most), "Instead of those it has.")
    if field.kind == "name":
        return body(field.name, QUEUE_NAME)
    return body(field.name, Type("integer" if field.kind == "integer" else "number", field.least, field.most))


def page(name: str) -> Reply:
    """The answer of a listing."""
    return Reply("page", (name, "cursor"))


SEARCHED = Reply(
    "own", ("queues", "names", "workers", "constraints", "schedules", "tags", "groups", "jobs", "more", "looked")
)
FOUND = Reply("page", ("jobs", "cursor", "looked"))


# Jobs.
JOB = path("id", JOB_ID, "id", "{job}")
ONE_OF_JOBS = path("id", JOB_ID, "ids[0]")
TRACE = (
    header("traceparent", TEXT, "W3C Trace Context, with `tracestate`: carried to the worker"),
    header("tracestate", TEXT, "See `traceparent`."),
)
ENQUEUE = (header("Idempotency-Key", Type("text", 1, 200), "A token of 1 to 200 bytes.", to="request"), *TRACE)
CHANGES = (*(_change(field) for field in FIELDS if field.changed), body("argument", VALUE, default=b""))
LINKS = (
    body("add", Type("list", None, 100)),
    body("remove", Type("list", None, 100)),
    body("if_failed", Type("text", choices=("wait", "fail", "run", "only"), schema="IfFailed")),
)
STEP = (
    body("ids", JOB_IDS),
    body("where", WHERE),
    body("cursor", TEXT, "Of the step before."),
    body("count", COUNT, "Change at most so many.", default=100),
)
ELSEWHERE = body("queue", QUEUE_NAME, "Where they wait from now on; default: where they did.")
CANCEL = (
    *STEP,
    body("force", FLAG, "Also running jobs that the settings protect.", default=False),
    body("dependents", DEPENDENTS, default="leave"),
    body("atomic", FLAG, "All of them or none.", default=False),
)
CONDITIONS = (
    query("queue", QUEUE_NAME, to="where.queue"),
    query("status", STATES, "A state, or several with commas between.", to="where.status"),
    query("name", NAME, to="where.name"),
    query("tag", NAME, to="where.tag"),
    query("group", NAME, "Of the last failure; finds only jobs that are `error`.", to="where.group"),
    query("from_ms", MOMENT, "Enqueued then or later.", to="where.from_ms"),
    query("to_ms", MOMENT, "Enqueued before.", to="where.to_ms"),
    query("message", TEXT, "Contained in the last failure's.", to="where.message"),
    query("worker", NAME, "Who runs it, or ran it last.", to="where.worker"),
    query("slower_ms", Type("moment", 0), "It ran, or runs, for longer than so many ms.", to="where.slower_ms"),
    query("argument", TEXT, "Text that its argument contains.", to="where.argument"),
    query("match", Type("matcher"), "A map of conditions, as of a constraint; JSON.", to="where.match"),
)

SEARCH = (
    query(
        "q", TEXT, "Part of a name, the id of a job, or a line such as `customer.id:acme slower:30s`.", required=True
    ),
    query("count", Type("integer", 1, 20), "Of each kind.", default=5),
)

GROUPS = (
    query("group", NAME, "Only that one; without `cursor` and `count`."),
    query("steps", Type("integer", 1, 100), "With `counts`: how many failed in each of so many parts."),
    query("from_ms", MOMENT, "Where the first part begins; with `steps`."),
    query("to_ms", MOMENT, "Where the last part ends; with `steps`."),
    query("sample", Type("integer", 1, 100), "With names, queues and values of so many of the newest."),
    *PAGE,
)

# Workers.
OF_WORKER = path("id", NAME, "worker", "{worker}")
WORKER = (
    header("worker-id", NAME, "The id from `POST /worker`. To pull, any name will do.", to="worker"),
    body("worker", NAME),
)
ABOUT_WORKER = (
    body("host", NAME, "Where it runs; `pid`, `version` and `knows` likewise are for people to see."),
    body("pid", Type("integer", 0, 2**32 - 1)),
    body("version", NAME),
    body("knows", Type("list", None, 100), "Names of jobs."),
    body("refused", Type("list", None, 100), "Names of jobs that it does not take."),
    body("announce", FLAG, "Not registered: a worker that picks as `name` is listed, for three minutes from now on."),
    body("running", Type("list", None, 100), "With `announce`, the ids of jobs that it runs."),
)
PICK = (
    body("queues", Type("list", 1, 100, schema="Queues"), required=True),
    body("count", Type("integer", 1, 1000, schema="Count"), default=1),
    body("order", Type("text", choices=("priority", "ordered", "round_robin", "shuffled"), schema="Order")),
    body("without", Type("list", 1, 100, schema="Without"), "Names of jobs that the worker does not take."),
    body("request", Type("text", 1, 200, schema="RequestToken")),
)

# Queues.
QUEUE = path("name", NAME, "name")
QUEUE_CHANGES = (
    body("paused", FLAG, "A paused queue takes jobs and starts none."),
    body("max_waiting", Type("integer", 0, schema="MaxWaiting")),
    body("fair", Type("list", None, 3, schema="Fair")),
    body("set", Type("map", schema="OwnSettings")),
    body("unset", Type("list"), "Settings that are the namespace's again."),
)

STANDING = (
    query("minutes", Type("integer", 1, 180), "With how it did in so many minutes."),
    query("held", Type("integer", 1, 1000), "With what holds so many of the first jobs that wait under constraints."),
)
ORDERS = (
    "name", "queued", "scheduled", "blocked", "running", "retrying", "done", "error", "cancelled", "skipped", "oldest",
    "cause",
    "net", "empties", "wait", "run", "enqueued", "ended", "workers",
)  # fmt: skip
RANKED = (
    query("by", Type("text", choices=ORDERS), "The column.", default="oldest"),
    query("turned", FLAG, "The other way round."),
    query("text", TEXT, "Contained in the name."),
    query("minutes", Type("integer", 1, 180), "How they did in so many minutes.", default=15),
    query("first", Type("integer", 0, 20_000), "Behind so many.", default=0),
    query("count", Type("integer", 1, 1000), default=50),
)
RANKING = Reply("own", ("queues", "total", "looked", "more", "counting", "age_ms"))

# Limits, schedules, statistics.
DECLARED = body("declared", NAME, "What tells a program's declaration, as a digest. Nothing changes if it is the same.")
ID = path("id", NAME, "id", "known")
LIMITS = (
    body("match", Type("value", schema="Matcher"), "a map of conditions", required=True),
    body("by", Type("list", schema="By")),
    body("concurrency", Type("integer", 1, 1e9, schema="Concurrency")),
    body("rate", Type("map", schema="Rate")),
    body("cost", Type("map", schema="Cost")),
    body("order", Type("text", choices=("strict",), schema="StrictOrder")),
    body("expires_in", Type("number", 0.001, 1e10), "Seconds after which it is deleted."),
    DECLARED,
)
BUSIEST = query(
    "busiest", Type("integer", 0, 100), "With sums over the keys of those that have `by`, and so many of the fullest."
)
PREFIX = query("prefix", Type("text", 1, 64), "Only keys whose value begins so.")
WEBHOOK = (
    body("url", Type("text", None, 2000, schema="Notify"), "http or https, without user and `#`."),
    body("match", Type("value", schema="Matcher"), "Of which jobs, as a constraint says it.", default=b""),
    body("on", Type("list", 1, 3, schema="Ends"), "Of which ends; default: all."),
    body("secrets", SECRETS, "24 to 64 bytes each, in base64. What goes to it is signed with each."),
)
HELD = (
    body("by", Type("raw"), "Which key: the value, or the list of values"),
    body("seconds", Type("number", 0, 31536000, schema="HoldSeconds"), required=True),
)

RECURRING = (
    body("every", Type("number", 0.1, 1e9), "Seconds from moment to moment."),
    body("offset", Type("number", 0), "Moments are so many seconds, and n times `every`, after 1970."),
    body("cron", TEXT, "Five fields: minute, hour, day of month, month (or `jan`-`dec`), day of week"),
    body("utc_offset", Type("integer", -1440, 1440), "Minutes by which the clock of `cron` is ahead of UTC."),
    body("timezone", Type("zone", 1, 255), "Whose clocks `cron` is about, such as `Europe/Berlin`."),
    body("tz", Type("text", 3, 100), "Its rule, as in POSIX' variable TZ; default: what is known of `timezone`."),
    body("start", Type("number", 0, 1e10), "No moment before; Unix seconds."),
    body("end", Type("number", 0, 1e10), "No moment after; Unix seconds."),
    body("limit", Type("integer", 1, 1e9), "At most so many jobs in all."),
    body(
        "catch_up",
        Type("text", choices=("one", "all", "none")),
        "When several moments have passed at once.",
        default="one",
    ),
    body("backlog", Type("integer", 1, 1000)),
    body("paused", FLAG, "Moments pass without jobs.", default=False),
    DECLARED,
    body("job", Type("map", schema="ScheduledJob"), required=True),
    body("argument", VALUE, default=NIL),
)
MOMENTS = query("next", Type("integer", 0, 100), "With so many moments to come.", default=0)
RUNS = query("runs", Type("integer", 0, 20), "With what became of so many jobs that it made last.", default=0)

BULK = (
    body("what", Type("text", choices=("discard", "cancel", "retry")), required=True),
    body("where", WHERE, required=True),
    body("total", Type("integer", 0, 10**15), "How many jobs there may be, to show how far it is."),
    body("force", FLAG, "With `cancel`."),
    body("dependents", Type("text", choices=("leave", "cancel")), "With `cancel`."),
    body("queue", QUEUE_NAME, "With `retry`: where they wait from now on."),
)
KEY = (
    body("name", Type("text", 1, 100), "Whose it is; the trail has it.", required=True),
    body("roles", Type("list", 1, 5, schema="Roles"), required=True),
    body("queues", Type("list", 1, 100, schema="BoundTo")),
    body("ttl", Type("number", 1, 1e10), "Seconds until it expires."),
    body("rate", Type("number", 0.001, 1e6), "Requests a second, of each master; more are refused (429)."),
)

PERIOD = (
    query("by", Type("text", choices=("minute", "hour", "day")), default="hour"),
    query("queue", QUEUE_NAME),
    query("name", NAME),
    query("from_ms", MOMENT, "Begun then or later."),
    query("to_ms", MOMENT, "Begun before."),
    query("brief", FLAG, "Without histograms."),
)
