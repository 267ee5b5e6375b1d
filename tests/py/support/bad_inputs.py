"""Bad input for every script, as a table: what is sent, and the code and path of the error it must get."""

from typing import NamedTuple

import msgpack

import bad_access
from bad_calls import of_calls
from bad_constraints import PATHS
from bad_fields import (
    CHANGES,
    FAILURE,
    JOB,
    LISTS,
    MAPS,
    MOVE,
    OF,
    OF_QUEUES,
    OUTCOME,
    PAGE,
    PICK,
    RATE,
    RESUME,
    SETTINGS,
    STARRED,
    UNIQUE,
    of,
)
from bad_finding import CURSORS, WHERE, WHERES
from bad_following import PROGRESS
from bad_schedules import CRONS, RULES
from bad_values import (
    BLOB,
    BOOLEANS,
    HOLD,
    IDS,
    NAMES,
    NOT_TEXT,
    RUNNING,
    TOKENS,
    URLS,
    WAITING,
    WEBHOOK_URLS,
    WORKER,
    Case,
    Raw,
    encode,
    integers,
    numbers,
    show,
    words,
)
from jqmaster.manifest.contract import SERVER
from jqmaster.manifest.manifest import operations
from jqmaster.manifest.types import PLAIN


class Target(NamedTuple):
    """One map that a script takes, with a valid example of it."""

    title: str
    script: str
    base: dict
    fields: dict  # name -> wrong values
    required: tuple = ()
    wrap: callable = lambda spec: [spec]
    at: str = ""  # the path of the map
    is_nested: bool = False  # within another map: then it cannot be broken bytes

    @property
    def prefix(self):
        return self.at and f"{self.at}."


SEEN_IN_PARTS = ("cron", "by", "cost", "digest", "url", "notify")  # errors show what is wrong in them
HELD = {"worker": "w", "jobs": [[RUNNING, HOLD]]}
SUCCESS = {"id": RUNNING, "token": HOLD, "type": "success"}
EVERY = {"id": "new", "every": 10, "catch_up": "all", "job": {"name": "a"}}
CRON = {"id": "new", "cron": "* * * * *", "job": {"name": "a"}}


def one_job(spec):
    return [spec, BLOB]


def one_constraint(spec):
    return [spec, encode({"name": "a"})]


def one_outcome(spec):
    return [encode({"worker": "w"}), spec, BLOB]


def within(name, base, wrap=lambda spec: [spec]):
    """Puts a map into another one."""
    return lambda spec: wrap(encode({**base, name: Raw(spec)}))


TARGETS = [
    Target("job", "enqueue", {"name": "a"}, JOB, ["name"], one_job, "jobs[0]"),
    Target("unique", "enqueue", {"name": "a", "unique": "k"}, UNIQUE, [], one_job, "jobs[0]"),
    Target("options", "enqueue", {"request": "t"}, {"request": TOKENS}, [],
           lambda spec: [spec, *one_job(encode({"name": "a"}))], "options"),
    Target("change", "change", {"id": WAITING, "priority": 1}, CHANGES, ["id"], one_job, "jobs[0]"),
    Target("depend", "depend", {"id": WAITING}, of("depend", "add", "remove", "if_failed", id=IDS), ["id"]),
    Target("kick", "kick", {"ids": [RUNNING]}, of("kick", "ids", "delay")),
    Target("move", "finish", {"name": "b"}, MOVE, [], within("move", SUCCESS, one_outcome), "outcomes[0].move", True),
    Target("resume", "finish", {"depends": [WAITING]}, RESUME, ["depends"], within("resume", SUCCESS, one_outcome),
           "outcomes[0].resume", True),
    Target("notes", "heartbeat", {"progress": 1}, {"progress": PROGRESS, "message": NOT_TEXT}, [],
           lambda spec: [encode({"worker": "w", "jobs": [[RUNNING, HOLD, Raw(spec)]]})], "jobs[0][2]", True),
    Target("pick", "pick", {"worker": "w", "queues": "a"}, {"worker": NAMES, **PICK}, ["worker", "queues"]),
    Target("heartbeat", "heartbeat", HELD, of("heartbeat", "worker", "jobs", control=BOOLEANS), ["worker", "jobs"]),
    Target("finish", "finish", {"worker": "w"}, {"worker": NAMES, "pick": MAPS}, ["worker"],
           lambda spec: [spec, encode(SUCCESS), BLOB]),
    Target("pick", "finish", {"queues": "a"}, PICK, ["queues"], within("pick", {"worker": "w"}), "pick", True),
    Target("success", "finish", SUCCESS, OUTCOME, ["id", "token", "type"], one_outcome, "outcomes[0]"),
    Target("failure", "finish", {**SUCCESS, "type": "failure"}, OUTCOME | FAILURE, ["id", "token", "type"], one_outcome,
           "outcomes[0]"),
    Target("release", "release", HELD, of("release", "worker", "jobs", "delay", "message", hold=[*LISTS[:3], {}, [],
           {str(number): 1 for number in range(11)}]), ["worker", "jobs"]),
    Target("cancel", "cancel", {"ids": [WAITING]}, of("cancel", "ids", "force", "dependents", "atomic"), ["ids"]),
    Target("cancel where", "cancel", {"where": {}}, of("cancel", "where", "count", "force", cursor=CURSORS)),
    Target("bulk", "bulk", {"what": "discard", "where": {}}, of("bulk", "where", "total", what=words("discard")),
           ["what", "where"]),
    Target("bulk retry", "bulk", {"what": "retry", "where": {}}, of("bulk", queue=STARRED)),
    Target("bulk cancel", "bulk", {"what": "cancel", "where": {}}, of("bulk", "force", dependents=words("leave"))),
    Target("queue", "queue", {"name": "a"}, of("queue", "paused", "max_waiting", "fair", "set", "known", name=STARRED,
           unset=[*LISTS, ["done_max"] * 101]), ["name"]),
    Target("own settings", "queue", {"done_max": 5}, OF_QUEUES, [], within("set", {"name": "a"}), "set", True),
    Target("fair", "queue", {"by": "argument.a"}, {"by": [*PATHS, {"a": 1}, []],
           "weights": [5, True, "x", {str(number): 1 for number in range(1001)}]}, [],
           within("fair", {"name": "a"}), "fair", True),
    Target("register", "register", {"name": "w", "queues": "a"}, of("register", "name", "queues", "max_jobs", "host",
           "pid", "version", "announce", "knows", "refused", url=URLS,
           secrets=[*LISTS, [], ["whsec_" + "A" * 32] * 3], key=bad_access.KEY_IDS), ["name", "queues"]),
    Target("assign", "assign", {"master": "m"}, {"master": NAMES, "limit": integers(1, 1000), "request": TOKENS,
           "wait": [*PICK["wait"], [1]], "without": [*LISTS, ["w"] * 201]}, ["master"]),
    Target("refuse", "refuse", {"worker": WORKER, "jobs": [[RUNNING, HOLD]], "why": "busy"}, {"worker": NAMES,
           "jobs": LISTS, "why": words("busy"), "retry_after": numbers(0, 3600), "message": NOT_TEXT},
           ["worker", "jobs", "why"]),
    Target("config", "config", {}, of("config", "describe", set=MAPS[:3], unset=[*LISTS, ["done_max"] * 101])),
    Target("settings", "config", {"done_max": 5}, SETTINGS, [], within("set", {}), "set", True),
    Target("definition", "constrain", {"id": "new", "concurrency": 1}, of("constrain", "id", "by", "concurrency",
           "rate", "cost", "declared"), ["id"], one_constraint),
    Target("rate", "constrain", {"limit": 1, "period": 1}, RATE, ["limit", "period"],
           within("rate", {"id": "new"}, one_constraint), "rate", True),
    Target("hold", "hold", {"id": "keyed", "by": "x", "seconds": 1}, of("hold", "id", "seconds",
           by=[[], ["x", "x"], {"a": 1}]), ["id", "seconds"]),
    Target("webhook", "subscribe", {"id": "new", "url": "http://h/"}, of("subscribe", "id", url=WEBHOOK_URLS,
           on=[*LISTS, [], ["done"] * 5], secrets=[*LISTS, [], ["whsec_" + "A" * 32] * 3]),
           ["id", "url"], one_constraint),
    Target("schedule", "schedule", EVERY, of("schedule", "id", "every", "start", "end", "limit", "catch_up", "backlog",
           "paused", "declared", "job", offset=numbers(0, 10)), ["id", "job"], one_job),
    Target("cron", "schedule", CRON, of("schedule", "utc_offset", cron=CRONS), [], one_job),
    Target("zone", "schedule", {**CRON, "tz": "UTC0", "timezone": "UTC"}, {"tz": RULES, "timezone": NAMES}, ["tz"],
           one_job),
    Target("job", "schedule", {"name": "a"}, {k: v for k, v in JOB.items() if k not in ("run_at", "depends")},
           ["name"], within("job", EVERY, one_job), "job", True),
    Target("jobs", "jobs", {}, of("jobs", "newest", "recent", "brief", "argument_max", "looked", "count", where=WHERES,
           cursor=CURSORS)),
    Target("where", "jobs", {}, WHERE, [], within("where", {}), "where", True),
    Target("retry", "retry", {"ids": [WAITING]}, of("retry", "ids", queue=STARRED), ["ids"]),
    Target("retry where", "retry", {"where": {}}, of("retry", "where", "count", cursor=CURSORS, queue=STARRED)),
    Target("discard", "discard", {"ids": [WAITING]}, of("discard", "ids"), ["ids"]),
    Target("discard where", "discard", {"where": {}}, of("discard", "where", "count", cursor=CURSORS)),
    Target("failures", "failures", {}, of("failures", "group", "sample", **PAGE)),
    Target("failures of a time", "failures", {"steps": 1, "from_ms": 1, "to_ms": 2}, {
           "steps": integers(1, 100), "from_ms": numbers(0, 10**15), "to_ms": numbers(0, 10**15)},
           ["from_ms", "to_ms"]),
    Target("stats", "stats", {"by": "hour", "series": True}, of("stats", "by", "queue", "name", "from_ms", "to_ms",
           series=BOOLEANS, brief=BOOLEANS, **PAGE), ["by"]),
    *bad_access.targets(Target),
]  # fmt: skip
NOT_PLAIN = {target.script for target in TARGETS}


def example(type_):
    """A value of a type; of what is there in the namespace, one that is."""
    if type_.kind == "list":
        return [example(type_.of)]
    if type_.kind in ("map", "document"):
        return {}
    there = {"job": WAITING, "worker": WORKER, "name": "known", "queue": "a"}
    return type_.words[0] if type_.words else there.get(type_.name, PLAIN[type_.name].example)


def plain_targets():
    """Of operations that stand here only by their heads: one map, of their arguments."""
    for name, one in operations().items():
        if one.positions == ("spec",) and name not in NOT_PLAIN and one.roles != (SERVER,):
            arguments = [argument for argument in one.arguments if argument.type != "actor"]
            base = {argument.name: example(argument.of) for argument in arguments if not argument.optional}
            wrong = {argument.name: OF[name][argument.name] for argument in arguments}
            yield Target("spec", name, base, {name: values for name, values in wrong.items() if values}, list(base))


def of_what_is_not_there():
    """Of these operations, those that miss what one of their arguments names."""
    for target in TARGETS:
        if target.script not in NOT_PLAIN:
            one = operations()[target.script]
            for error in one.errors:
                if error.code == "NOTFOUND" and error.path in target.base:
                    is_job = one.argument(error.path).type == "job"
                    spec = encode(target.base | {error.path: "0" * 14 if is_job else "unknown"})
                    yield Case(f"{target.script}: unknown", target.script, [spec], "NOTFOUND", error.path)


TARGETS += plain_targets()

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
        known = name if target.at == "options" else target.prefix + name
        for value in wrong:
            whole = None if name in SEEN_IN_PARTS else value
            yield case(f"{name} {show(value)}", target.base | {name: value}, known, "", whole)
        for near in (name + "x", name.upper(), name[:-1] + "_"):
            says = f"did you mean {name}?"
            yield case(f"unknown {near}", target.base | {near: 1}, target.prefix + near, says)
    for name in target.required:
        yield case(f"no {name}", {k: v for k, v in target.base.items() if k != name}, target.prefix + name, "nothing")
        yield case(f"{name} nil", target.base | {name: None}, target.prefix + name, "nothing")
    says = "unknown field, expected one of" if len(target.fields) > 1 else "unknown field"
    yield case("unknown zzzzzzzz", target.base | {"zzzzzzzz": 1}, target.prefix + "zzzzzzzz", says)
    yield case("unknown empty", target.base | {"": 1}, target.prefix, "unknown field")
    if not target.is_nested:
        for what, spec in BROKEN.items():
            yield case(what, spec, target.at or "spec")


CASES = [
    *(case for target in TARGETS for case in of_target(target)),
    *of_calls(target.script for target in TARGETS),
    *of_what_is_not_there(),
]
