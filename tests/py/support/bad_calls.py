"""Bad input that a map alone does not show: counts of arguments, batches, things that are not there."""

from bad_access import of_access
from bad_constraints import of_constraints
from bad_copying import of_copying
from bad_fields import HOLDS
from bad_finding import of_finding
from bad_following import of_following
from bad_schedules import of_schedules
from bad_values import (
    BLOB,
    DONE,
    HEAVY,
    HEAVY_CANCELLED,
    HOLD,
    IDS,
    NO_WORKER,
    RUNNING,
    UNKNOWN,
    WAITING,
    WORKER,
    Case,
    Raw,
    encode,
    numbers,
    show,
)
from bad_webhooks import of_webhooks
from jqmaster.manifest.manifest import operations


def of_bounds(refused):
    """What the namespace, or the call, has no room for."""
    known = {"name": "a"}
    yield refused("enqueue", "a new queue", "FULL", "jobs[0].queue", {"name": "nobody knows it"}, BLOB)
    yield refused("enqueue", "a new name", "FULL", "jobs[0].name", {"name": "nobody knows it", "queue": "a"}, BLOB)
    yield refused("enqueue", "a new tag", "FULL", "jobs[0].tags[0]", known | {"tags": ["nobody knows it"]}, BLOB)
    yield refused("enqueue", "only the last tag new", "FULL", "jobs[1].tags[0]", known, BLOB,
                  encode(known | {"tags": ["nobody knows it"]}), BLOB)  # fmt: skip
    yield refused("queue", "a new one", "FULL", "name", {"name": "nobody knows it"})
    yield refused("change", "a new tag", "FULL", "jobs[0].tags[0]", {"id": WAITING, "tags": ["nobody knows it"]}, b"")
    heavy = encode({"name": "heavy"})
    yield Case("enqueue: too much matching", "enqueue", [heavy, BLOB] * 1000, "INVALID", "jobs")
    heavy = encode({"id": HEAVY, "priority": 5})
    yield Case("change: too much matching", "change", [heavy, b""] * 1000, "INVALID", "jobs")
    yield refused("retry", "too much matching", "INVALID", "ids", {"ids": [HEAVY_CANCELLED] * 1000})


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


def of_calls(scripts):
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
    yield from of_bounds(refused)
    yield Case("enqueue: full by itself", "enqueue", by_itself, "FULL", "jobs[2].queue")
    yield refused("enqueue", "known token", "CONFLICT", "request", {"request": "known"}, job, BLOB)

    yield from of_constraints(invalid, refused)
    yield from of_schedules(invalid, refused)
    yield from of_webhooks(invalid, refused)
    yield from of_finding(invalid, refused)
    yield from of_copying(invalid, Case)
    yield from of_access(invalid, refused)
    for secret in ("", 5, "whsec_", "A" * 38, "whsec_" + "A" * 28, "whsec_" + "A" * 33, "whsec_" + "A" * 88,
                   "whsec_" + "_" * 32, "whsec_" + "A" * 33 + "===", "whsec_" + "A" * 31 + "=A=="):  # fmt: skip
        spec = {"name": "w", "queues": "a", "secrets": ["whsec_" + "A" * 32, secret]}
        yield invalid("register", f"second secret {show(secret)}", "secrets[1]", encode(spec))
    for other in ("", 5, "\0", "w"):
        spec = {"master": "m", "without": ["w", other]}
        yield invalid("assign", f"without {show(other)}", "without[1]", encode(spec))
    yield from of_following(invalid, refused)
    of_another_kind = {"enqueue", "finish", "constrain", "schedule", "subscribe", "change"}
    for script in sorted(set(scripts) - of_another_kind):
        yield invalid(script, "no arguments", "spec")
        if script != "heartbeat":  # it takes what its notes name
            yield invalid(script, "two arguments", "spec", encode({}), encode({}))
    yield invalid("retry", "a wrong where", "where.status", encode({"where": {"status": "x"}}))
    yield invalid("enqueue", "a long unknown field", "jobs[0]." + "x" * 40 + '"?(5000?bytes',
                  encode({"name": "a", "x" * 5000: 1}), BLOB)  # fmt: skip
    yield invalid("enqueue", "only for nothing", "jobs[0].if_failed", encode({"name": "a", "if_failed": "only"}), BLOB)
    resume = {"id": RUNNING, "token": HOLD, "type": "success", "resume": {"depends": [WAITING], "if_failed": "only"}}
    yield invalid("finish", "only of what has begun", "outcomes[0].resume.if_failed",
                  encode({"worker": "w"}), encode(resume), BLOB)  # fmt: skip
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
    for script, field, base in (("pick", "without", {"worker": "w", "queues": "a"}),
                                ("register", "refused", {"name": "w", "queues": "a"})):  # fmt: skip
        for name in ("", 5, "\0", "x" * 256):
            spec = encode({**base, field: ["a", name]})
            yield invalid(script, f"second of {field} {show(name)}", f"{field}[1]", spec)
    yield invalid("pick", "a name twice", "without[1]",
                  encode({"worker": "w", "queues": "a", "without": ["a", "a"]}))  # fmt: skip
    for script, base in (("heartbeat", {"worker": "w"}), ("release", {"worker": "w"}),
                         ("refuse", {"worker": WORKER, "why": "busy"})):  # fmt: skip
        for path, what, jobs in of_pairs():
            yield invalid(script, what, path, encode({**base, "jobs": jobs}))

    one_id = [name for name, one in operations().items() if one.positions == ("id",)]
    for script in one_id:
        yield invalid(script, "no id", "id")
        yield invalid(script, "two ids", "id", WAITING, WAITING)
        yield Case(f"{script}: unknown", script, [UNKNOWN], "NOTFOUND", "id")
    for script in ("get", "watch"):
        yield invalid(script, "no ids", "ids", says="got 0")
        yield invalid(script, "1001 ids", "ids", *[WAITING] * 1001, says="got 1001")
    for id in IDS:
        if isinstance(id, str):
            for script in one_id:
                yield invalid(script, f"id {show(id)}", "id", id)
            yield invalid("get", f"second id {show(id)}", "ids[1]", WAITING, id)
            yield invalid("watch", f"second id {show(id)}", "ids[1]", WAITING, id)
        yield invalid("cancel", f"second id {show(id)}", "ids[1]", encode({"ids": [WAITING, id]}))
    for script, field in (("queues", "names"), ("constraints", "ids"), ("schedules", "ids")):
        for name in ("", 5, "\0", "x" * 256, Raw(b"\xa1\xff")):
            yield invalid(script, f"one of {field}, {show(name)}", f"{field}[0]", encode({field: [name]}))
            yield invalid(script, f"second of {field} {show(name)}", f"{field}[1]", encode({field: ["a", name]}))
    yield invalid("queues", "names and count", "count", encode({"names": ["a"], "count": 1}))
    yield invalid("setup", "an argument", "arguments", encode({}))

    unknown = {"pick": {"queues": "a"}, "heartbeat": {"jobs": [[RUNNING, HOLD]]},
               "refuse": {"jobs": [[RUNNING, HOLD]], "why": "unknown"}}  # fmt: skip
    for script, spec in unknown.items():
        yield refused(script, "unknown worker", "NOTFOUND", "worker", {"worker": NO_WORKER, **spec})
