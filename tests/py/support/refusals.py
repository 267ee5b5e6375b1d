"""Bad input for every script: what is sent, and the code and path of the error it must get. Wrong values come of the
types in the heads of scripts, and of the documents that stand here as heads would have them; what no type says is a
table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import msgpack

from jqmaster.manifest.contract import Argument
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.manifest import operations
from refusal_values import (
    BLOB,
    DIGEST,
    HOLD,
    KEY,
    RUNNING,
    WAITING,
    WORKER,
    Raw,
    encode,
    example,
    show,
    wrong,
)


class Case(NamedTuple):
    script: str
    args: list[Any]
    code: str
    path: str | None
    says: str = ""  # a part of the message
    value: object = None  # that the message is to show

    @property
    def title(self) -> str:
        return f"{self.script} {self.path}: {[show(arg) for arg in self.args[:4]]}"


class Target(NamedTuple):
    """One map that a script takes, with a valid example of it."""

    script: str
    base: dict[str, Any]
    fields: list[Argument]
    wrap: Callable[[bytes], list[Any]]
    at: str = ""  # the path of the map
    is_nested: bool = False  # within another map: then it cannot be broken bytes
    required: tuple[str, ...] = ()

    @property
    def prefix(self) -> str:
        return self.at and f"{self.at}."


# ---- what a valid call is ----

SUCCESS = {"id": RUNNING, "token": HOLD, "type": "success"}
HELD = {"worker": "w", "jobs": [[RUNNING, HOLD]]}
W, A = encode({"worker": "w"}), encode({"name": "a"})
# Where the head does not say enough.
BASE: dict[str, dict[str, Any]] = {
    "kick": {"ids": [RUNNING]}, "heartbeat": HELD, "release": HELD, "cancel": {"ids": [WAITING]},
    "retry": {"ids": [WAITING]}, "discard": {"ids": [WAITING]},
    "register": {"name": "w", "queues": "a"}, "pick": {"worker": "w", "queues": "a"},
    "refuse": {"worker": WORKER, "jobs": [[RUNNING, HOLD]], "why": "busy"},
    "constrain": {"id": "new", "concurrency": 1},
    "hold": {"id": "keyed", "by": "x", "seconds": 1}, "subscribe": {"id": "new", "url": "http://h/"},
    "schedule": {"id": "new", "every": 10, "job": {"name": "a"}}, "stats": {"by": "hour"},
    "grant": {"id": KEY, "digest": DIGEST, "name": "n", "roles": ["viewer"]}, "touch": {"ids": [KEY]},
    "enqueue": {"name": "a"}, "change": {"id": WAITING, "priority": 1}, "finish": SUCCESS, "queue": {"name": "a"},
}  # fmt: skip
BEHIND = {"enqueue": BLOB, "change": b"", "constrain": A, "subscribe": A, "schedule": BLOB, "finish": BLOB}


def wrapped(script: str, spec: bytes) -> list[Any]:
    """A map with what goes with it; to `finish` it is an outcome."""
    behind = [BEHIND[script]] if script in BEHIND else []
    return [*([W] if script == "finish" else []), spec, *behind]


def base_of(script: str) -> dict[str, Any]:
    needed = [one for one in operations()[script].arguments if not one.optional and one.name != "match"]
    return BASE.get(script) or {one.name: example(one) for one in needed}


# ---- documents ----


def field(name: str, type_: str, least: float | None = None, most: float | None = None) -> Argument:
    return Argument(name=name, type=type_, least=least, most=most, optional=True)


TYPES = {"set<reference>": "set<Reference>", "map<text>": "Texts"}  # with wrong values of their own
JOB = {one.name: field(one.name, TYPES.get(one.type, one.type), one.least, one.most) for one in FIELDS}
UNIQUE = [JOB[one.name] for one in FIELDS if "unique" in (one.name, one.needs)]
PLAIN_JOB = [one for one in JOB.values() if one not in UNIQUE]
CHANGES = [field("id", "job"), *(JOB[one.name] for one in FIELDS if one.changed and one.name != "tags")]
CHANGES.append(field("tags", "set<name>", 0, 32))
MOVE = [JOB[name] for name in ("name", "queue", "priority", "delay")]
RESUME = [JOB["depends"], JOB["if_failed"], field("checkpoint", "flag")]
RATE = [field("limit", "integer", 1, 1e7), field("period", "seconds", 0.001, 31536000)]
FAIR = [field("by", "Path"), field("weights", "map<number>")]
OUTCOME = [field("id", "job"), field("token", "Hold"), field("type", "success|failure")]
FAILURE = [field("reason", "other|timeout"), field("should_retry", "flag"), field("retry_in", "seconds", 0, 1e10),
           field("message", "message"), field("group", "name")]  # fmt: skip
NOTES = [field("progress", "Progress"), field("message", "message")]
OWN_SETTINGS = [
    JOB["retry_jitter"], field("result_grace", "number", 0, 1e10),
    *(field(name, "number", 0, 1e10) for name in ("retry_base", "retry_cap", "done_ttl", "error_ttl", "cancelled_ttl")),
    *(field(name, "number", 1, 1e10) for name in ("result_ttl", "late_after")),
    *(field(f"{state}_max", "integer", 0, 1e9) for state in ("done", "error", "cancelled")),
]  # fmt: skip
SETTINGS = [
    *OWN_SETTINGS, *(field(name, "number", 1, 86400) for name in ("request_ttl", "worker_ttl")),
    field("cancel_running", "flag"), field("stats", "flag"), field("events_max", "integer", 0, 1e7),
    field("trail_max", "integer", 0, 1e6),
]  # fmt: skip
WHERE = [
    *(field(name, "name") for name in ("queue", "name", "tag", "group", "worker")), field("status", "States"),
    *(field(name, "ms", 0, 2**53) for name in ("from_ms", "to_ms", "slower_ms")),
    *(field(name, "text", 1, 1024) for name in ("message", "argument")), field("match", "Matcher"),
]  # fmt: skip


def within(script: str, name: str, base: dict[str, Any]) -> Callable[[bytes], list[Any]]:
    """Puts a map into another one."""
    return lambda spec: wrapped(script, encode({**base, name: Raw(spec)}))


def of_documents() -> Iterator[Target]:
    def one(script: str, *more: Any, required: str = "") -> Target:
        return Target(script, *more, required=tuple(required.split()))

    yield one("enqueue", {"name": "a"}, PLAIN_JOB, lambda spec: [spec, BLOB], "jobs[0]", required="name")
    yield one("enqueue", {"name": "a", "unique": "k"}, UNIQUE, lambda spec: [spec, BLOB], "jobs[0]")
    yield one("enqueue", {"request": "t"}, [field("request", "token")], lambda spec: [spec, A, BLOB], "options")
    yield one("change", BASE["change"], CHANGES, lambda spec: [spec, b""], "jobs[0]", required="id")
    yield one("finish", {"worker": "w"}, [field("worker", "worker"), field("pick", "Pick")],
              lambda spec: [spec, encode(SUCCESS), BLOB], required="worker")  # fmt: skip
    for kind, fields in (("success", OUTCOME), ("failure", OUTCOME + FAILURE)):
        yield one(
            "finish",
            SUCCESS | {"type": kind},
            fields,
            lambda spec: [W, spec, BLOB],
            "outcomes[0]",
            required="id token type",
        )
    yield one("finish", {"name": "b"}, MOVE, within("finish", "move", SUCCESS), "outcomes[0].move", True)
    yield one("finish", {"depends": [WAITING]}, RESUME, within("finish", "resume", SUCCESS), "outcomes[0].resume", True)
    picked = [argument for argument in operations()["pick"].arguments if argument.name != "worker"]
    yield one(
        "finish", {"queues": "a"}, picked, lambda spec: [encode({"worker": "w", "pick": Raw(spec)})], "pick", True
    )
    yield one("heartbeat", {"progress": 1}, NOTES,
              lambda spec: [encode(HELD | {"jobs": [[RUNNING, HOLD, Raw(spec)]]})], "jobs[0][2]", True)  # fmt: skip
    yield one("queue", {"done_max": 5}, OWN_SETTINGS, within("queue", "set", {"name": "a"}), "set", True)
    yield one("config", {"done_max": 5}, SETTINGS, within("config", "set", {}), "set", True)
    yield one("queue", {"by": "argument.a"}, FAIR, within("queue", "fair", {"name": "a"}), "fair", True)
    yield one("constrain", {"limit": 1, "period": 1}, RATE, within("constrain", "rate", {"id": "new"}), "rate", True,
              required="limit period")  # fmt: skip
    yield one("jobs", {}, WHERE, within("jobs", "where", {}), "where", True)
    of_schedule = [argument for argument in PLAIN_JOB if argument.name not in ("run_at", "depends")]
    yield one("schedule", {"name": "a"}, of_schedule, within("schedule", "job", BASE["schedule"]), "job", True)


# By operation and argument, of which the head does not say all: another type.
AS: dict[tuple[str, str], Argument] = {
    ("schedule", "cron"): field("cron", "Cron"), ("schedule", "tz"): field("tz", "Rule"),
    ("stats", "queue"): field("queue", "name"),
    ("register", "url"): field("url", "Address"),
}  # fmt: skip
# What another argument has to be beside it.
BESIDE: dict[tuple[str, str], dict[str, Any]] = {
    ("schedule", "cron"): {"every": None},
    ("schedule", "tz"): {"every": None, "cron": "@daily"},
    ("schedule", "timezone"): {"every": None, "cron": "@daily", "tz": "UTC0"},
}  # fmt: skip


def of_operations() -> Iterator[Target]:
    """The spec of each, by its head."""
    for name, one in operations().items():
        if one.positions[:1] == ("spec",) and name != "finish":
            fields = [AS.get((name, argument.name), argument) for argument in one.arguments]
            inside = [argument for argument in fields if argument.name not in one.behind]
            needed = tuple(argument.name for argument in inside if not argument.optional)
            yield Target(name, base_of(name), inside, partial(wrapped, name), required=needed)


TARGETS = [*of_operations(), *of_documents()]

BROKEN = {
    "no bytes": b"", "nil": b"\xc0", "a list": encode(["name", "a"]), "text": encode("name"),
    "two maps": encode({}) + encode({}), "never a value": b"\xc1", "truncated": encode({"name": "abc"})[:-1],
    "a key without value": b"\x81\xa1a", "bin value": encode({"name": b"a"}), "bin key": encode({b"name": "a"}),
    "ext value": encode({"name": msgpack.ExtType(1, b"a")}), "100,000 maps": b"\x81\xa1a" * 100_000 + b"\xc0",
    "100,000 lists": b"\x91" * 100_000 + b"\xc0", "a map of 4 billion": b"\xdf\xff\xff\xff\xff",
    "a list of 4 billion": b"\xdd\xff\xff\xff\xff\xa1a", "text of 4 GB": b"\x81\xa4name\xdb\xff\xff\xff\xffabc",
    "a megabyte of nothing": b"\0" * 2**20, "a number as key": encode({5: 1}), "true as key": encode({True: 1}),
}  # fmt: skip
SEEN_IN_PARTS = ("cron", "by", "digest", "url", "notify")  # errors show what is wrong in them


def of_target(target: Target) -> Iterator[Case]:
    """What can be wrong with a map, whatever it is."""

    def case(spec: Any, path: str, says: str = "", value: object = None) -> Case:
        raw = spec if isinstance(spec, bytes) else encode(spec)
        return Case(target.script, target.wrap(raw), "INVALID", path, says, value)

    for one in target.fields:
        name, known = one.name, one.name if target.at == "options" else target.prefix + one.name
        base = target.base | BESIDE.get((target.script, name), {"ids": None} if name == "where" else {})
        for place, value in wrong(one):
            whole = None if place or name in SEEN_IN_PARTS else value
            yield case(base | {name: value}, known + place, "", whole)
        yield case(base | {name + "x": 1}, target.prefix + name + "x", "unknown field, expected one of")
    for name in target.required:
        yield case({key: value for key, value in target.base.items() if key != name}, target.prefix + name, "nothing")
        yield case(target.base | {name: None}, target.prefix + name, "nothing")
    yield case(target.base | {"": 1}, target.prefix, "unknown field")
    for spec in () if target.is_nested else BROKEN.values():
        yield case(spec, target.at or "spec")


TYPED = [case for target in TARGETS for case in of_target(target)]
