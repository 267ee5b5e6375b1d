"""Bad input for every script, as a table: what is sent, and the code and path of the error it must get."""

from typing import NamedTuple

import msgpack

from bad_constraints import BY, COSTS, FAIR, HOLD_SECONDS, PATHS, TAGS, of_constraints
from bad_copying import of_copying
from bad_finding import CURSORS, WHERE, WHERES, of_finding
from bad_following import DEPENDS, PROGRESS, SOME_TAGS, of_following
from bad_schedules import CRONS, RULES, of_schedules
from bad_values import (
    BLOB,
    BOOLEANS,
    DONE,
    HOLD,
    IDS,
    INFINITE,
    NAMES,
    NAN,
    NO_WORKER,
    NOT_TEXT,
    QUEUES,
    RUNNING,
    TIMES,
    TOKENS,
    UNKNOWN,
    URLS,
    WAITING,
    WAITS,
    WORKER,
    Raw,
    encode,
    integers,
    numbers,
    show,
    words,
)
from jqmaster.wire.fields import CHANGED, FIELDS


class Case(NamedTuple):
    title: str
    script: str
    args: list
    code: str
    path: str | None
    says: str = ""  # a part of the message
    value: object = None  # that the message is to show


class Target(NamedTuple):
    """One map that a script takes, with a valid example of it."""

    title: str
    script: str
    base: dict
    fields: dict  # name -> wrong values
    required: list
    wrap: callable = lambda spec: [spec]
    prefix: str = ""
    whole: str = "spec"  # path for what is wrong with the map itself
    is_nested: bool = False  # within another map: then it cannot be broken bytes
    unknown: str | None = None  # prefix of unknown fields, where it is another


HEADERS = [
    5, True, False, "text", ["a"], {"a": 1}, {"a": {"b": "c"}}, {"": "a"}, {1: "a"}, {"x" * 256: "a"},
    {"a": "b\n"}, {"a": "x" * 1025}, {"a": "x" * 600, "b": "x" * 600}, {f"k{i}": "v" for i in range(17)},
    {"a\0": "b"},
]  # fmt: skip
PICK = {
    "queues": QUEUES,
    "count": integers(1, 1000),
    "order": words("priority"),
    "request": TOKENS,
    "wait": WAITS,
}
# Redis reads what does not fit into 63 bits as negative: 2**64 - 1 is -1.
MINUTES = [value for value in integers(-1440, 1440) if value != 2**64 - 1]


def wrong(field):
    """What a field of a job refuses."""
    bounds = field.least, field.most
    if field.kind == "integer":
        return [value for value in integers(*map(int, bounds)) if field.least >= 0 or value != 2**64 - 1]
    if field.kind in ("number", "seconds", "moment"):
        return numbers(*bounds)
    if field.kind == "choice":
        return words(field.words[0].name)
    kinds = {"name": NAMES, "boolean": BOOLEANS, "names": TAGS, "jobs": DEPENDS, "texts": HEADERS}
    return kinds[field.kind] + (["a*", "*"] if field.name == "queue" else [])


WRONG = {field.name: wrong(field) for field in FIELDS}
UNIQUE = {field.name: WRONG[field.name] for field in FIELDS if "unique" in (field.name, field.needs)}
JOB = {name: values for name, values in WRONG.items() if name not in UNIQUE}
CHANGES = {"id": IDS} | {name: WRONG[name] for name in CHANGED} | {"tags": SOME_TAGS}
BACKOFF = {name: WRONG[name] for name in ("retry_base", "retry_cap", "retry_jitter")}
RATE = {"limit": integers(1, 10**9), "period": numbers(0.001, 31536000), "smooth": BOOLEANS}
SETTINGS = {
    **BACKOFF, "result_ttl": numbers(1, 1e10), "result_grace": numbers(0, 1e10),
    "request_ttl": numbers(1, 86400),
    "done_ttl": numbers(0, 1e10), "done_max": integers(0, 10**9), "error_ttl": numbers(0, 1e10),
    "error_max": integers(0, 10**9), "cancelled_ttl": numbers(0, 1e10), "cancelled_max": integers(0, 10**9),
    "cancel_running": BOOLEANS, "worker_ttl": numbers(1, 86400), "lease_grace": numbers(0, 86400),
    "events_max": integers(0, 10**7), "stats": BOOLEANS,
}  # fmt: skip
OF_QUEUES = {k: v for k, v in SETTINGS.items()
             if k not in ("request_ttl", "cancel_running", "worker_ttl", "events_max", "stats")}  # fmt: skip
HOLDS = [
    1, 0, True, {}, [HOLD], "", "1", "-", "0-", "01-", "1-x", "1-A", "1 -a", "1-a ", "-1-a", "1-a-b", "1.5-a",
    "1-a\0", "1-" + "0" * 22,
]  # fmt: skip
OUTCOME = {"id": IDS, "token": HOLDS, "type": words("success"), "finished_at": TIMES}
FAILURE = {
    "reason": [*words("other"), "expired"],
    "should_retry": BOOLEANS,
    "message": [*NOT_TEXT, "x" * 65537],
    "group": NAMES,
}
SEEN_IN_PARTS = ("cron", "by", "cost")  # errors show what is wrong in them
LISTS = [5, True, "x", {"a": 1}]
HELD = {"worker": "w", "jobs": [[RUNNING, HOLD]]}
EVERY = {"id": "new", "every": 10, "catch_up": "all", "job": {"name": "a"}}


def one_job(spec):
    return [spec, BLOB]


def one_constraint(spec):
    return [spec, encode({"name": "a"})]


def one_outcome(spec):
    return [encode({"worker": "w"}), spec, BLOB]


TARGETS = [
    Target("job", "enqueue", {"name": "a"}, JOB, ["name"], one_job, "jobs[0].", "jobs[0]"),
    Target("unique", "enqueue", {"name": "a", "unique": "k"}, UNIQUE, [], one_job, "jobs[0].", "jobs[0]"),
    Target("change", "change", {"id": WAITING, "priority": 1}, CHANGES, ["id"], one_job, "jobs[0].",
           "jobs[0]"),
    Target("depend", "depend", {"id": WAITING}, {"id": IDS, "add": [*LISTS, [WAITING] * 101],
           "remove": [*LISTS, [WAITING] * 101], "if_failed": words("wait")}, ["id"]),
    Target("kick", "kick", {"ids": [RUNNING]}, {"ids": [*LISTS, [], [RUNNING] * 1001],
           "delay": numbers(0, 1e10)}, []),
    Target("kick of a queue", "kick", {"queue": "a"}, {"queue": [*NAMES, "a*", "*"],
           "count": integers(1, 1000), "delay": numbers(0, 1e10)}, []),
    Target("move", "finish", {"name": "b"}, {"name": NAMES, "queue": [*NAMES, "a*", "*"],
           "priority": WRONG["priority"], "delay": WRONG["delay"]}, [],
           lambda spec: one_outcome(encode({"id": RUNNING, "token": HOLD, "type": "success",
                                            "move": Raw(spec)})),
           "outcomes[0].move.", "outcomes[0].move", True),
    Target("notes", "heartbeat", {"progress": 1}, {"progress": PROGRESS,
           "message": [*NOT_TEXT, "x" * 1025]}, [],
           lambda spec: [encode({"worker": "w", "jobs": [[RUNNING, HOLD, Raw(spec)]]})],
           "jobs[0][2].", "jobs[0][2]", True),
    Target("options", "enqueue", {"request": "t"}, {"request": TOKENS}, [],
           lambda spec: [spec, encode({"name": "a"}), BLOB], "", "options", unknown="options."),
    Target("pick", "pick", {"worker": "w", "queues": "a"}, {"worker": NAMES, **PICK}, ["worker", "queues"]),
    Target("heartbeat", "heartbeat", HELD, {"worker": NAMES, "jobs": LISTS, "control": BOOLEANS},
           ["worker", "jobs"]),
    Target("finish", "finish", {"worker": "w"}, {"worker": NAMES, "pick": [5, True, "x", [1]]}, ["worker"],
           lambda spec: [spec, encode({"id": RUNNING, "token": HOLD, "type": "success"}), BLOB]),
    Target("pick", "finish", {"queues": "a"}, PICK, ["queues"],
           lambda spec: [encode({"worker": "w", "pick": Raw(spec)})], "pick.", "pick", True),
    Target("success", "finish", {"id": RUNNING, "token": HOLD, "type": "success"}, OUTCOME,
           ["id", "token", "type"], one_outcome, "outcomes[0].", "outcomes[0]"),
    Target("failure", "finish", {"id": RUNNING, "token": HOLD, "type": "failure"}, OUTCOME | FAILURE,
           ["id", "token", "type"], one_outcome, "outcomes[0].", "outcomes[0]"),
    Target("release", "release", HELD, {"worker": NAMES, "jobs": [*LISTS, []], "delay": numbers(0, 1e10),
           "message": [*NOT_TEXT, "x" * 65537],
           "hold": [*LISTS[:3], {}, [], {str(number): 1 for number in range(11)}]}, ["worker", "jobs"]),
    Target("cancel", "cancel", {"ids": [WAITING]}, {"ids": [*LISTS, [], [WAITING] * 1001],
           "force": BOOLEANS, "dependents": words("leave")}, ["ids"]),
    Target("tick", "tick", {}, {"limit": integers(1, 1000)}, []),
    Target("queue", "queue", {"name": "a"}, {"name": [*NAMES, "a*", "*"], "paused": BOOLEANS,
           "max_waiting": [-1, 1.5, "1", True, NAN, INFINITE, []], "fair": FAIR,
           "set": [5, True, "x"], "unset": [5, True, "x", {"a": 1}, ["done_max"] * 101]}, ["name"]),
    Target("own settings", "queue", {"done_max": 5}, OF_QUEUES, [],
           lambda spec: [encode({"name": "a", "set": Raw(spec)})], "set.", "set", True),
    Target("level", "queue", {"by": "argument.a"}, {"by": [*PATHS, {"a": 1}, []],
           "weights": [5, True, "x", {str(number): 1 for number in range(1001)}]}, ["by"],
           lambda spec: [encode({"name": "a", "fair": [{"by": "name"}, Raw(spec)]})],
           "fair[1].", "fair[1]", True),
    Target("queues", "queues", {}, {"names": [*LISTS, [], ["a"] * 1001], "cursor": [5, True, [], {"a": 1}],
           "count": integers(1, 1000)}, []),
    Target("register", "register", {"name": "w", "queues": "a"}, {"name": NAMES, "queues": QUEUES,
           "url": URLS, "max_jobs": integers(1, 1000)}, ["name", "queues"]),
    Target("unregister", "unregister", {"worker": WORKER}, {"worker": NAMES}, ["worker"]),
    Target("workers", "workers", {}, {"cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}, []),
    Target("assign", "assign", {"master": "m"}, {"master": NAMES, "limit": integers(1, 1000), "request": TOKENS,
           "wait": [*WAITS, [1]]}, ["master"]),
    Target("refuse", "refuse", {"worker": WORKER, "jobs": [[RUNNING, HOLD]], "why": "busy"}, {"worker": NAMES,
           "jobs": LISTS, "why": words("busy"), "retry_after": numbers(0, 3600),
           "message": [*NOT_TEXT, "x" * 65537]}, ["worker", "jobs", "why"]),
    Target("config", "config", {}, {"set": [5, True, "x"], "describe": BOOLEANS}, []),
    Target("settings", "config", {"done_max": 5}, SETTINGS, [],
           lambda spec: [encode({"set": Raw(spec)})], "set.", "set", True),
    Target("definition", "constrain", {"id": "new", "concurrency": 1}, {"id": NAMES, "by": BY,
           "concurrency": integers(1, 10**9), "rate": [5, True, "x", [1]], "cost": COSTS,
           "order": words("strict")}, ["id"], one_constraint),
    Target("rate", "constrain", {"limit": 1, "period": 1}, RATE, ["limit", "period"],
           lambda spec: one_constraint(encode({"id": "new", "rate": Raw(spec)})), "rate.", "rate", True),
    Target("constraint", "unconstrain", {"id": "known"}, {"id": NAMES}, ["id"]),
    Target("constraints", "constraints", {}, {"ids": [*LISTS, [], ["a"] * 1001],
           "cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}, []),
    Target("usage", "usage", {"id": "known"}, {"id": NAMES, "cursor": [5, True, [], {"a": 1}],
           "count": integers(1, 1000)}, ["id"]),
    Target("hold", "hold", {"id": "keyed", "by": "x", "seconds": 1}, {"id": NAMES,
           "by": [[], ["x", "x"], {"a": 1}], "seconds": HOLD_SECONDS}, ["id", "seconds"]),
    Target("schedule", "schedule", EVERY, {"id": NAMES, "every": numbers(0.1, 1e9), "offset": numbers(0, 10),
           "start": numbers(0, 1e10), "end": numbers(0, 1e10), "limit": integers(1, 10**9),
           "catch_up": words("all"), "backlog": integers(1, 1000), "paused": BOOLEANS,
           "job": [5, True, "x", [1]]}, ["id", "job"], one_job),
    Target("cron", "schedule", {"id": "new", "cron": "* * * * *", "job": {"name": "a"}}, {"cron": CRONS,
           "utc_offset": MINUTES}, [], one_job),
    Target("zone", "schedule", {"id": "new", "cron": "@daily", "tz": "UTC0", "timezone": "UTC", "job": {"name": "a"}},
           {"tz": RULES, "timezone": NAMES}, ["tz"], one_job),
    Target("job", "schedule", {"name": "a"}, {k: v for k, v in JOB.items() if k not in ("run_at", "depends")},
           ["name"], lambda spec: one_job(encode({**EVERY, "job": Raw(spec)})), "job.", "job", True),
    Target("schedule", "unschedule", {"id": "known"}, {"id": NAMES}, ["id"]),
    Target("schedules", "schedules", {}, {"ids": [*LISTS, [], ["a"] * 1001],
           "cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000), "next": integers(0, 100)}, []),
    Target("jobs", "jobs", {}, {"where": WHERES, "newest": BOOLEANS, "brief": BOOLEANS, "cursor": CURSORS,
           "count": integers(1, 1000)}, []),
    Target("where", "jobs", {}, WHERE, [],
           lambda spec: [encode({"where": Raw(spec)})], "where.", "where", True),
    Target("retry", "retry", {"ids": [WAITING]}, {"ids": [*LISTS, [], [WAITING] * 1001]}, ["ids"]),
    Target("retry where", "retry", {"where": {}}, {"where": WHERES, "cursor": CURSORS,
           "count": integers(1, 1000)}, []),
    Target("discard", "discard", {"ids": [WAITING]}, {"ids": [*LISTS, [], [WAITING] * 1001]}, ["ids"]),
    Target("discard where", "discard", {"where": {}}, {"where": WHERES, "cursor": CURSORS,
           "count": integers(1, 1000)}, []),
    Target("cancel where", "cancel", {"where": {}}, {"where": WHERES, "cursor": CURSORS,
           "count": integers(1, 1000), "force": BOOLEANS}, []),
    Target("failures", "failures", {}, {"cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}, []),
    Target("stats", "stats", {"by": "hour", "series": True}, {"by": words("hour"), "queue": NAMES,
           "name": NAMES, "from_ms": numbers(0, 1e15), "to_ms": numbers(0, 1e15), "series": BOOLEANS,
           "cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}, ["by"]),
    Target("tags", "tags", {}, {"cursor": [5, True, [], {"a": 1}], "count": integers(1, 1000)}, []),
    Target("top", "tags", {}, {"top": integers(1, 1000)}, []),
    Target("forget", "forget", {"queue": "a"}, {"queue": [*NAMES, "a*", "*"]}, ["queue"]),
    Target("export", "export", {}, {"cursor": [5, True, [], {"a": 1}, "x", "00", "c0"],
           "count": integers(1, 1000)}, []),
    Target("worker", "worker", {"worker": WORKER, "request": "quiet"}, {"worker": NAMES,
           "request": words("quiet")}, ["worker", "request"]),
    Target("track", "track", {"ids": [WAITING]}, {"ids": [*LISTS, [], [WAITING] * 1001], "on": BOOLEANS},
           ["ids"]),
    Target("audit", "audit", {}, {"cursor": [5, True, [], {"a": 1}, "", "x", "-1"],
           "count": integers(1, 1000)}, []),
]  # fmt: skip

BROKEN = {
    "no bytes": b"",
    "a number": encode(5),
    "text": encode("name"),
    "nil": b"\xc0",
    "true": b"\xc3",
    "a list": encode(["name", "a"]),
    "a float": encode(1.5),
    "two maps": encode({}) + encode({}),
    "a byte behind": encode({"name": "a"}) + b"\xc0",
    "never a value": b"\xc1",
    "text that is no MessagePack": b"hello",
    "truncated": encode({"name": "abc"})[:-1],
    "a key without value": b"\x81\xa1a",
    "bin value": encode({"name": b"a"}),
    "bin key": encode({b"name": "a"}),
    "ext value": encode({"name": msgpack.ExtType(1, b"a")}),
    "timestamp": encode({"name": msgpack.Timestamp(1, 2)}),
    "100,000 maps": b"\x81\xa1a" * 100_000 + b"\xc0",
    "100,000 lists": b"\x91" * 100_000 + b"\xc0",
    "a map of 4 billion": b"\xdf\xff\xff\xff\xff",
    "a list of 4 billion": b"\xdd\xff\xff\xff\xff\xa1a",
    "text of 4 GB": b"\x81\xa4name\xdb\xff\xff\xff\xffabc",
    "bin of 4 GB": b"\x81\xa4name\xc6\xff\xff\xff\xffabc",
    "a megabyte of nothing": b"\0" * 2**20,
    "a number as key": encode({5: 1}),
    "true as key": encode({True: 1}),
}


def of_target(target):
    """What can be wrong with a map, whatever it is."""
    title = f"{target.script} {target.title}"

    def case(what, spec, path, says="", value=None):
        args = target.wrap(spec if isinstance(spec, bytes) else encode(spec))
        return Case(f"{title}: {what}", target.script, args, "INVALID", path, says, value)

    for name, wrong in target.fields.items():
        for value in wrong:
            whole = None if name in SEEN_IN_PARTS else value
            yield case(f"{name} {show(value)}", target.base | {name: value}, target.prefix + name, "", whole)
        unknown = target.prefix if target.unknown is None else target.unknown
        for near in (name + "x", name.upper(), name[:-1] + "_"):
            says = f"did you mean {name}?"
            yield case(f"unknown {near}", target.base | {near: 1}, unknown + near, says)
    for name in target.required:
        yield case(f"no {name}", {k: v for k, v in target.base.items() if k != name}, target.prefix + name, "nothing")
        yield case(f"{name} nil", target.base | {name: None}, target.prefix + name, "nothing")
    says = "unknown field, expected one of" if len(target.fields) > 1 else "unknown field"
    yield case("unknown zzzzzzzz", target.base | {"zzzzzzzz": 1}, unknown + "zzzzzzzz", says)
    yield case("unknown empty", target.base | {"": 1}, unknown, "unknown field")
    if not target.is_nested:
        for what, spec in BROKEN.items():
            yield case(what, spec, target.whole)


def of_pairs():
    """Wrong lists of [id, token], the same for all who take them."""
    held = [RUNNING, HOLD]
    wrong = {
        "jobs": [held] * 1001, "jobs[0]": held, "jobs[1]": [held, [RUNNING]],
        "jobs[2]": [held, [DONE, HOLD], [WAITING, HOLD, {}, 1]], "jobs[0][0]": [["x", HOLD]],
        "jobs[1][0]": [held, [1, HOLD]],
    }  # fmt: skip
    for path, jobs in wrong.items():
        yield path, f"{len(jobs)} jobs, wrong at {path}", jobs
    for token in HOLDS:
        yield "jobs[1][1]", f"token {show(token)}", [held, [RUNNING, token]]


def of_calls():
    """What a map alone does not show: counts of arguments, batches, things that are not there."""
    job, outcome = encode({"name": "a"}), encode({"id": RUNNING, "token": HOLD, "type": "success"})
    worker, late = (
        encode({"worker": "w"}),
        encode({"id": RUNNING, "token": HOLD, "type": "failure", "reason": "late"}),
    )

    def invalid(script, what, path, *args, says=""):
        return Case(f"{script}: {what}", script, list(args), "INVALID", path, says)

    def refused(script, what, code, path, spec, *more):
        return Case(f"{script}: {what}", script, [encode(spec), *more], code, path)

    yield invalid("enqueue", "nothing", "jobs")
    yield invalid("enqueue", "options alone", "jobs", encode({"request": "t"}))
    yield invalid("enqueue", "1001 jobs", "jobs", *[job, BLOB] * 1001)
    yield invalid("enqueue", "empty argument", "jobs[0].argument", job, b"")
    yield invalid("enqueue", "only the last wrong", "jobs[4].priority",
                  *[job, BLOB] * 4, encode({"name": "a", "priority": 1.5}), BLOB)  # fmt: skip
    yield invalid("enqueue", "only the last argument empty", "jobs[999].argument", *[job, BLOB] * 999, job, b"")
    yield invalid("enqueue", "only the last no map", "jobs[2]", *[job, BLOB] * 2, b"\x93", BLOB)
    both = {"name": "a", "delay": 1, "run_at": 1}
    yield invalid("enqueue", "delay and run_at", "jobs[0].delay", encode(both), BLOB, says="both")
    yield invalid("enqueue", "a name with * as queue", "jobs[0].name", encode({"name": "a*"}), BLOB)
    full = {"name": "a", "queue": "full"}
    yield refused("enqueue", "full", "FULL", "jobs[0].queue", full, BLOB)
    yield refused("enqueue", "only the last full", "FULL", "jobs[2].queue", {"name": "a"}, BLOB, job, BLOB,
                  encode(full), BLOB)  # fmt: skip
    roomy = encode({"name": "a", "queue": "room for one"})
    by_itself = [job, BLOB, roomy, BLOB, roomy, BLOB]
    yield Case("enqueue: full by itself", "enqueue", by_itself, "FULL", "jobs[2].queue")
    yield refused("enqueue", "known token", "CONFLICT", "request", {"request": "known"}, job, BLOB)

    yield from of_constraints(invalid, refused)
    yield from of_schedules(invalid, refused)
    yield from of_finding(invalid, refused)
    yield from of_copying(invalid, Case)
    yield from of_following(invalid, refused)
    yield Case("history: unknown", "history", [UNKNOWN], "NOTFOUND", "id")
    of_another_kind = {"enqueue", "finish", "constrain", "schedule", "change"}
    for script in sorted({target.script for target in TARGETS} - of_another_kind):
        yield invalid(script, "no arguments", "spec")
        if script != "heartbeat":  # it takes what its notes name
            yield invalid(script, "two arguments", "spec", encode({}), encode({}))
    yield invalid("queue", "no map among levels", "fair[1]", encode({"name": "a", "fair": [{"by": "name"}, 5]}))
    yield invalid("retry", "a wrong where", "where.status", encode({"where": {"status": "x"}}))
    yield invalid("enqueue", "a long unknown field", "jobs[0]." + "x" * 40 + '"?(5000?bytes',
                  encode({"name": "a", "x" * 5000: 1}), BLOB)  # fmt: skip
    yield invalid("finish", "the attempt's number", "outcomes[0].attempt",
                  encode({"worker": "w"}), encode({"id": RUNNING, "attempt": 1, "type": "success"}), BLOB,
                  says="did you mean token, which came with the job?")  # fmt: skip
    yield invalid("finish", "nothing", "spec")
    yield invalid("finish", "no outcomes", "outcomes", worker)
    yield invalid("finish", "an outcome without blob", "outcomes", worker, outcome)
    yield invalid("finish", "a blob too many", "outcomes", worker, outcome, BLOB, BLOB)
    yield invalid("finish", "1001 outcomes", "outcomes", worker, *[outcome, BLOB] * 1001)
    yield invalid("finish", "empty blob", "outcomes[0].blob", worker, outcome, b"")
    yield invalid("finish", "only the last blob empty", "outcomes[2].blob", worker, *[outcome, BLOB] * 2, outcome, b"")
    yield invalid("finish", "only the last wrong", "outcomes[2].reason", worker, *[outcome, BLOB] * 2, late, BLOB)
    for field, value in (("reason", "other"), ("should_retry", True), ("message", "")):
        success = {"id": RUNNING, "token": HOLD, "type": "success", field: value}
        yield invalid("finish", f"success with {field}", f"outcomes[0].{field}", worker, encode(success), BLOB)
    picking = {"queues": "a", "worker": "v"}
    yield invalid("finish", "pick with a worker", "pick.worker", encode({"worker": "w", "pick": picking}))
    yield refused("finish", "outcomes, and a pick of an unknown worker", "NOTFOUND", "worker",
                  {"worker": NO_WORKER, "pick": {"queues": "a"}}, outcome, BLOB)  # fmt: skip
    yield invalid("finish", "outcomes, and a wrong pick", "pick.count",
                  encode({"worker": "w", "pick": {"queues": "a", "count": 0}}), outcome, BLOB)  # fmt: skip

    channels = ("", "x" * 65, "a b", "a:b", "é", 5, True, [])
    waits = {"wait.on": [{"ms": 5}, *({"on": on, "ms": 5} for on in channels)],
             "wait.ms": [{"on": "push"}, *({"on": "push", "ms": ms} for ms in numbers(1, 60000))],
             "wait.om": [{"on": "push", "ms": 5, "om": 1}], "wait": [[1]]}  # fmt: skip
    for path, wrong in waits.items():
        for wait in wrong:
            spec = {"worker": "w", "queues": "a", "wait": wait}
            yield invalid("pick", f"wait {show(wait)}", path, encode(spec))
            yield invalid("assign", f"wait {show(wait)}", path, encode({"master": "m", "wait": wait}))
            spec = {"worker": "w", "pick": {"queues": "a", "wait": wait}}
            yield invalid("finish", f"wait {show(wait)}", "pick." + path, encode(spec))
    yield invalid("assign", "wait on another channel", "wait.on",
                  encode({"master": "m", "wait": {"on": "jobs", "ms": 5}}))  # fmt: skip
    for script, field, base in (("pick", "queues", {"worker": "w"}), ("register", "queues", {"name": "w"})):
        for name in ("", 5, "\0", "x" * 256):
            yield invalid(script, f"second of queues {show(name)}", "queues[1]", encode({**base, field: ["a", name]}))
    for script, base in (("heartbeat", {"worker": "w"}), ("release", {"worker": "w"}),
                         ("refuse", {"worker": WORKER, "why": "busy"})):  # fmt: skip
        for path, what, jobs in of_pairs():
            yield invalid(script, what, path, encode({**base, "jobs": jobs}))

    for script in ("result", "explain"):
        yield invalid(script, "no id", "id")
        yield invalid(script, "two ids", "id", WAITING, WAITING)
        yield Case(f"{script}: unknown", script, [UNKNOWN], "NOTFOUND", "id")
    for script in ("get", "watch"):
        yield invalid(script, "no ids", "ids", says="got 0")
        yield invalid(script, "1001 ids", "ids", *[WAITING] * 1001, says="got 1001")
    for id in IDS:
        if isinstance(id, str):
            yield invalid("result", f"id {show(id)}", "id", id)
            yield invalid("explain", f"id {show(id)}", "id", id)
            yield invalid("get", f"second id {show(id)}", "ids[1]", WAITING, id)
            yield invalid("watch", f"second id {show(id)}", "ids[1]", WAITING, id)
        yield invalid("cancel", f"second id {show(id)}", "ids[1]", encode({"ids": [WAITING, id]}))
    for name in ("", 5, "\0", "x" * 256):
        yield invalid("queues", f"second of names {show(name)}", "names[1]", encode({"names": ["a", name]}))
    yield invalid("queues", "names and count", "names", encode({"names": ["a"], "count": 1}))
    yield invalid("setup", "an argument", "arguments", encode({}))
    yield invalid("migrate", "an argument", "arguments", encode({}))

    unknown = {"pick": {"queues": "a"}, "heartbeat": {"jobs": [[RUNNING, HOLD]]}, "unregister": {},
               "refuse": {"jobs": [[RUNNING, HOLD]], "why": "unknown"},
               "worker": {"request": "stop"}}  # fmt: skip
    for script, spec in unknown.items():
        yield refused(script, "unknown worker", "NOTFOUND", "worker", {"worker": NO_WORKER, **spec})


CASES = [case for target in TARGETS for case in of_target(target)] + list(of_calls())
