"""Bad input of which no type says that it is wrong: what fields say together, counts of arguments, what is not there,
matchers, records for import. `CASES` are all there are, also those of refusals.py."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgpack

from jqmaster.manifest.manifest import operations
from refusal_values import (
    BLOB,
    DIGEST,
    DONE,
    HEAVY,
    HEAVY_CANCELLED,
    HOLD,
    INFINITE,
    KEY,
    LEASES,
    NAN,
    NEVER,
    NO_WORKER,
    PATHS,
    RUNNING,
    SECRET,
    UNKNOWN,
    WAITING,
    Raw,
    encode,
    wrong,
)
from refusals import BASE, HELD, SUCCESS, TYPED, A, Case, W, base_of, field, wrapped


def nested(levels: int, inner: Any) -> Any:
    for _ in range(levels):
        inner = {"not": inner}
    return inner


EXT = msgpack.ExtType(5, b"x")
MANY = [str(number) for number in range(1001)]
NOT_SCALARS = [[], [1], {}, {"a": 1}, NAN]
MATCHERS: dict[str, list[Any]] = {
    "": [
        {}, [], 5, "name", None, b"bin", EXT, [{"name": "a"}], {5: 1},
        {f"argument.{number}": 1 for number in range(101)}, {"any": [{"name": "a"}] * 100, "queue": "a"},
        {"argument": "x" * 70_000}, {"argument.a": {"in": MANY[:600]}, "argument.b": {"in": MANY[:401]}}, Raw(b""),
        Raw(b"\xc1"), Raw(b"\x81\xa4name"), Raw(b"\x81\xa4name\xa1a\xc0"), Raw(b"\xdf\xff\xff\xff\xff"),
        Raw(b"\x81\xa3not" * 100_000 + b"\x81\xa4name\xa1a"), Raw(b"\x91" * 60_000 + b"\xc0"),
    ],
    ".nam": [{"nam": "a"}], ".id": [{"name": "a", "id": "a"}], ".": [{"": 1}], ".argumentx": [{"argumentx": 1}],
    ".argument" + ".a" * 33: [{"argument" + ".a" * 33: 1}], ".argument.": [{"argument.": 1}],
    ".argument." + "a" * 71 + "...": [{"argument." + "a" * 1016: 1}], ".argument.a\\b": [{"argument.a\\b": 1}],
    ".argument..a": [{"argument..a": 1}],
    ".any": [{"any": value} for value in (5, None, [], {}, {"name": "a"}, [{"name": "a"}] * 101)],
    ".any[1]": [{"any": [{"name": "a"}, value]} for value in ({}, 5, None, [], "a")],
    ".any[0].any[1].not.queue.lt": [{"any": [{"any": [{"name": "a"}, {"not": {"queue": {"lt": 5}}}]}]}],
    ".not": [{"not": value} for value in ({}, 5, None, [], [{"name": "a"}], "a")],
    ".not" * 5: [nested(5, {"name": "a"}), nested(300, {"name": "a"})],
    ".name": [*({"name": value} for value in (5, None, NAN, "", "x" * 256, "a\n", EXT, [], {}, MANY)),
              {"name": Raw(b"\xa1\xff")}],
    ".name[1]": [{"name": ["a", value]} for value in (5, None, "", ["a"], {}, NAN)],
    ".name.lt": [{"name": {"lt": value}} for value in (5, None, True, *NOT_SCALARS)],
    ".name.glob": [{"name": {"glob": value}} for value in (5, None, ["a*"])],
    ".name.exists": [{"name": {"exists": value}} for value in (0, 1, "true", None, [])],
    ".name.in": [{"name": {"in": value}} for value in ("a", 5, [], {"a": 1}, None, MANY)],
    ".name.in[0]": [{"name": {"in": [5]}}], ".name.foo": [{"name": {"foo": "a"}}], ".name.": [{"name": {"": "a"}}],
    ".queue.eq": [{"queue": {"eq": "a*"}}],
    ".queue.in[1]": [{"queue": {"in": ["a", "*"]}}], ".priority[1]": [{"priority": [1, 2**64 - 1]}],
    ".priority": [{"priority": value} for value in ("1", 1.5, 2**31, -(2**31) - 1, NAN, INFINITE, True, None, [])],
    ".priority.lt": [{"priority": {"lt": value}} for value in ("1", True, None, NAN, [])],
    ".tags": [{"tags": value} for value in (5, "", None, [], {})], ".tags[0]": [{"tags": [["a"]]}],
    ".argument.a": [{"argument.a": value} for value in ({}, [], NAN)],
    ".argument.a[2]": [{"argument.a": [1, 2, value]} for value in NOT_SCALARS],
    ".argument.a.eq": [{"argument.a": {"eq": value}} for value in NOT_SCALARS],
    ".argument.size.lt": [{"argument.size": {"lt": value}} for value in (True, None, *NOT_SCALARS)],
    ".argument.to?the?left.lt": [{"argument.to the:left": {"lt": []}}],  # a path has neither blanks nor colons
}  # fmt: skip

KEYED = {"id": "keyed twice", "seconds": 1}
FOUND = {"ids": None, "where": {}}
WAITS = {
    "wait.on": [{"on": on, "ms": 5} for on in (None, "", "x" * 65, "a b", "a:b", "é", 5, True, [])],
    "wait.ms": [{"on": "push", "ms": ms} for ms in (None, 0, 60001, 0.5, "1", True, NAN, INFINITE)],
    "wait.om": [{"on": "push", "ms": 5, "om": 1}],
}  # fmt: skip
NOTHING = {"every": None}
CRON = {"every": None, "cron": "* * * * *"}
# By operation, and how the error begins (INVALID, where no code is said): what the map has beside a valid one's, or
# all arguments. None takes something out.
BY_HAND: dict[str, dict[str, list[Any]]] = {
    "enqueue": {
        "jobs": [[], [encode({"request": "t"})], [A, BLOB] * 1001, [encode({"name": "heavy"}), BLOB] * 1000],
        "jobs[0].argument": [[A, b""]], "jobs[999].argument": [[A, BLOB] * 999 + [A, b""]],
        "jobs[2]": [[A, BLOB] * 2 + [b"\x93", BLOB]],
        "jobs[4].priority": [[A, BLOB] * 4 + [encode({"name": "a", "priority": 1.5}), BLOB]],
        "jobs[0].delay: both": [{"delay": 1, "run_at": 1}], "jobs[0].name": [{"name": "a*"}],
        "FULL jobs[0].queue": [{"queue": "full"}],
        "FULL jobs[2].queue": [[A, BLOB] + [encode({"name": "a", "queue": "room for one"}), BLOB] * 2],
        "jobs[0]." + "x" * 40 + '"?(5000?bytes': [{"x" * 5000: 1}], "jobs[0].if_failed": [{"if_failed": "only"}],
        "jobs[0].unique_for": [{"unique_for": 1}],
        "jobs[0].if_exists": [{"if_exists": "keep"}, {"unique": "k", "unique_within": 1, "if_exists": "latest"}],
        "jobs[0].unique_within": [{"unique_within": 1}, {"unique": "k", "unique_within": 1, "unique_for": 1}],
        "jobs[0].depends": [{"unique": "k", "if_exists": "latest", "depends": [WAITING]}],
        "jobs[0].depends[1]": [{"depends": [WAITING, wrong]} for wrong in (0, 5)],
        "NOTFOUND jobs[0].depends[1]": [{"depends": [WAITING, NEVER]}],
    },
    "change": {
        "jobs": [[], [encode(BASE["change"])], [encode(BASE["change"]), b""] * 1001,
                 [encode({"id": HEAVY, "priority": 5}), b""] * 1000],
        "jobs[0]": [{"priority": None}], "jobs[0].delay: both": [{"delay": 1, "run_at": 1}],
        "jobs[2].priority": [[encode(BASE["change"]), b""] * 2 + [encode({"id": WAITING, "priority": 1.5}), b""]],
    },
    "finish": {
        "spec": [[]], "outcomes": [[W], [W, encode(SUCCESS)], [W, encode(SUCCESS), BLOB, BLOB],
                                   [W, *[encode(SUCCESS), BLOB] * 1001]],
        "outcomes[2].blob": [[W, *[encode(SUCCESS), BLOB] * 2, encode(SUCCESS), b""]],
        "outcomes[2].reason": [
            [W, *[encode(SUCCESS), BLOB] * 2, encode(SUCCESS | {"type": "failure", "reason": "late"}), BLOB]],
        "outcomes[0].reason": [{"reason": "other"}], "outcomes[0].should_retry": [{"should_retry": True}],
        "outcomes[0].message": [{"message": ""}], "pick.count": [
            [encode({"worker": "w", "pick": {"queues": "a", "count": 0}}), encode(SUCCESS), BLOB]],
        "pick.worker": [[encode({"worker": "w", "pick": {"queues": "a", "worker": "v"}})]],
        "NOTFOUND worker": [[encode({"worker": NO_WORKER, "pick": {"queues": "a"}}), encode(SUCCESS), BLOB]],
        "outcomes[0].move": [
            {"move": {"name": "a"}, "type": "failure"}, *({"move": wrong} for wrong in (5, [1], {}, {"priority": 1}))],
        "outcomes[0].move.nam: expected one of": [{"move": {"nam": "a"}}],
        "outcomes[0].resume": [
            {"resume": {"depends": [WAITING]}, "type": "failure"}, *({"resume": wrong} for wrong in (5, "x", [1])),
            {"resume": {"depends": [WAITING]}, "move": {"name": "a"}}],
        "outcomes[0].resume.if_failed": [{"resume": {"depends": [WAITING], "if_failed": "only"}}],
        "outcomes[0].resume.depends[0]": [{"resume": {"depends": [0]}}],
        "NOTFOUND outcomes[0].resume.depends[1]": [{"resume": {"depends": [WAITING, NEVER]}}],
        "outcomes[0].resume.depends[1]": [
            [W, encode(SUCCESS | {"resume": {"depends": [0, 1]}, "enqueue": 1}), BLOB, A, BLOB]],
        "outcomes[0].enqueue": [
            [W, encode(SUCCESS | more), BLOB, A, BLOB]
            for more in ({"enqueue": 1, "type": "failure"}, *({"enqueue": wrong} for wrong in (0, 1001, 1.5, "1", 2)))],
        "outcomes[0].enqueue[0].argument": [[W, encode(SUCCESS | {"enqueue": 1}), BLOB, A, b""]],
        "outcomes[0].enqueue[0]": [[W, encode(SUCCESS | {"enqueue": 1}), BLOB, b"\x93", BLOB]],
        "outcomes[0].enqueue[1].priority": [
            [W, encode(SUCCESS | {"enqueue": 2}), BLOB, A, BLOB, encode({"name": "a", "priority": 1.5}), BLOB]],
        "NOTFOUND outcomes[0].enqueue[0].depends[0]": [
            [W, encode(SUCCESS | {"enqueue": 1}), BLOB, encode({"name": "a", "depends": [NEVER]}), BLOB]],
        **{f"pick.{path}": [[encode({"worker": "w", "pick": {"queues": "a", "wait": wait}})] for wait in waits]
           for path, waits in WAITS.items()},
    },
    "pick": {path: [{"wait": wait} for wait in waits] for path, waits in WAITS.items()}
    | {"NOTFOUND worker": [{"worker": NO_WORKER}]},
    "assign": {"wait.on": [{"wait": {"on": "jobs", "ms": 5}}]},
    "heartbeat": {
        "NOTFOUND worker": [{"worker": NO_WORKER}],
        "jobs[0][2]": [{"jobs": [[RUNNING, HOLD, wrong]]} for wrong in (5, True, "x", [1])],
        "jobs[1][2].argument": [
            *({"jobs": [[RUNNING, HOLD], [RUNNING, HOLD, {"argument": wrong}]]} for wrong in (-1, 0.5, "1", [], NAN)),
            [encode({"worker": "w", "jobs": [[one, HOLD, {"argument": 0}] for one in (RUNNING, WAITING)]}), BLOB]],
        "jobs[0][2].argument": [
            [encode({"worker": "w", "jobs": [[RUNNING, HOLD, {"argument": 0}]]}), *blobs] for blobs in ((), (b"",))],
        "arguments": [[encode({"worker": "w", "jobs": [[RUNNING, HOLD, {"argument": 0}]]}), BLOB, BLOB]],
        "spec": [[encode(HELD), BLOB]],
    },
    "release": {
        "hold": [{"hold": wrong} for wrong in ({}, {str(number): 1 for number in range(11)})],
        "NOTFOUND hold.new": [{"hold": {"known": 1, "new": 1}}],
        "hold.known": [{"hold": {"keyed": 1, "known": wrong}} for wrong in (-1, 31536001, "1", True, [], NAN)],
    },
    "refuse": {"NOTFOUND worker": [{"worker": NO_WORKER}]},
    "register": {"key": [{"key": KEY[:11]}, {"key": KEY.upper()}], "secrets[1]": [{"secrets": [SECRET, "whsec_"]}]},
    "retry": {"ids": [{"ids": [HEAVY_CANCELLED] * 1000}], "where.status": [FOUND | {"where": {"status": "x"}}]},
    "cancel": {
        "atomic": [FOUND | {"atomic": True}], "dependents": [FOUND | {"dependents": "refuse"}],
        "NOTFOUND ids[1]": [{"ids": [WAITING, UNKNOWN], "atomic": True}],
        "CONFLICT ids[1]": [{"ids": [WAITING, DONE], "atomic": True}],
    },
    "kick": {"count": [{"count": 1}]},
    "discard": {"cursor": [{"cursor": ""}], "count": [{"count": 1}], "ids": [{"where": {}}, {"ids": None}]},
    "queue": {
        "fair.weights.a": [
            {"fair": {"by": "name", "weights": {"b": 1, "a": wrong}}} for wrong in (0, 0.0009, 1001, "1", True, NAN)],
    },
    "queues": {"count": [{"names": ["a"], "count": 1}]}, "constraints": {"count": [{"ids": ["a"], "count": 1}]},
    "schedules": {"count": [{"ids": ["a"], "count": 1}], "ids": [{"ids": ["a"] * 21, "next": 100}]},
    "constrain": {
        **{f"match{path}": [[encode(BASE["constrain"]), encode(matcher)] for matcher in matchers]
           for path, matchers in MATCHERS.items()},
        "arguments": [[], [encode(BASE["constrain"])], [encode(BASE["constrain"]), A, A]],
        "concurrency": [{"concurrency": None}], "by[1]": [{"by": ["name", path]} for path in PATHS],
    },
    "hold": {
        "NOTFOUND id": [{"id": "new", "by": None}],
        "by": [
            [encode({"id": "keyed", "seconds": 1})], {"id": "known"}, {"by": {"a": 1}},
            *(KEYED | {"by": by} for by in (None, "x", [], ["x"], ["x", "y", "z"], ["x", ["y"]], ["x", {"a": 1}]))],
    },
    "usage": {"prefix": [{"prefix": "x"}]},
    "subscribe": {
        "match": [[encode(BASE["subscribe"]), encode({})], [encode({"id": "notify"}), A]],
        "spec": [[], [encode(BASE["subscribe"]), A, BLOB]],
        "url": [[encode({"id": "notify", "url": "http://h/"})]], "on": [[encode({"id": "notify", "on": ["done"]})]],
        "FULL match": [[encode(BASE["subscribe"]), encode({"name": [f"a long name {one:03}" for one in range(990)]})]],
    },
    "schedule": {
        "arguments": [[], [encode(BASE["schedule"])], [encode(BASE["schedule"]), BLOB, BLOB]],
        "argument": [[encode(BASE["schedule"]), b""]], "every: neither": [{"every": None}],
        "cron: both": [{"cron": "* * * * *"}],
        "tz": [{"tz": "UTC0"}, CRON | {"timezone": "Europe/Berlin"}], "timezone": [{"timezone": "UTC0"}],
        "job": [{"run": True} | NOTHING],
        "job.run_at": [{"job": {"name": "a", "run_at": 5}}], "job.depends": [{"job": {"name": "a", "depends": [0]}}],
        "job.name": [{"job": {"name": "a*"}}], "job.unique_for": [{"job": {"name": "a", "unique_for": 1}}],
        "NOTFOUND id": [[encode({"id": "unknown", "run": True})]], "run": [{"run": False, "job": None} | NOTHING],
    },
    "jobs": {
        "cursor": [{"cursor": cursor} for cursor in (
            "x", ":", "::::", "1:q:0:" + "0" * 14 + ":a", "1:qw:0::a", "1:qw::" + "0" * 14 + ":a",
            "-1:qw:0:" + "0" * 14 + ":a", "x" * 2**20, f"{NAN}:qw:0:{'0' * 14}:a")]
        + [{"where": {"tag": "t"}, "cursor": "1:qw:0:" + "0" * 14 + ":a"}],
        "where.match.customer": [{"where": {"match": {"customer": 1}}}],
        "where.match.any[0].name": [{"where": {"match": {"any": [{"name": 5}]}}}],
    },
    "failures": {"cursor: group": [{"group": "g", "cursor": ""}]},
    "stats": {field: [{"by": "day", field: 1}] for field in ("count",)} | {"cursor": [{"cursor": "x"}]},
    "forget": {"CONFLICT name": [{"name": "a"}]},
    "grant": {
        "id": [{"id": KEY[:11]}, {"id": KEY.upper()}, {"id": KEY[:11] + "\n"}], "digest": [{"digest": DIGEST + "0"}],
        "CONFLICT id": [{"id": "00000000000a"}],
    },
    "setup": {"arguments": [[encode({})]]},
    "audit": {"cursor": [{"cursor": wrong} for wrong in ("x", "-1")]},
    "export": {"cursor": [{"cursor": wrong} for wrong in ("x", "00", "c0")]},
    "trail": {"cursor": [{"cursor": wrong} for wrong in ("x", RUNNING.upper())]},
    "marks": {"cursor": [{"cursor": wrong} for wrong in ("x", "0" * 13)]},
}  # fmt: skip
# Wrong lists of [id, token], the same for all who take them.
PAIRS = {
    "jobs": [[RUNNING, HOLD]] * 1001, "jobs[0]": [RUNNING, HOLD], "jobs[1]": [[RUNNING, HOLD], [RUNNING]],
    "jobs[2]": [[RUNNING, HOLD], [DONE, HOLD], [WAITING, HOLD, {}, 1]], "jobs[0][0]": [["x", HOLD]],
    "jobs[1][0]": [[RUNNING, HOLD], [1, HOLD]], "jobs[3]": [[RUNNING, HOLD]] * 3 + [NAN],
}  # fmt: skip


def by_hand() -> Iterator[Case]:
    for script, errors in BY_HAND.items():
        for error, specs in errors.items():
            found = re.fullmatch(r"(?:([A-Z]+) )?([^:]*)(?:: (.*))?", error)
            assert found, error
            for spec in specs:
                args = spec if isinstance(spec, list) else wrapped(script, encode(base_of(script) | spec))
                yield Case(script, args, found[1] or "INVALID", found[2], found[3] or "")
    for script in ("heartbeat", "release", "refuse"):
        wrong_pairs = [*PAIRS.items(), *(("jobs[1][1]", [[RUNNING, HOLD], [RUNNING, one]]) for one in LEASES)]
        for path, jobs in wrong_pairs:
            yield Case(script, [encode(base_of(script) | {"jobs": jobs})], "INVALID", path)
    for name, one in operations().items():
        if one.positions == ("spec",):
            for args in ([], [encode({}), encode({})]):
                yield Case(name, args, "INVALID", "spec")
        elif one.positions in (("id",), ("ids...",)):
            path, many = ("id", [WAITING] * 2) if one.positions == ("id",) else ("ids", [WAITING] * 1001)
            yield from (Case(name, args, "INVALID", path) for args in ([], many))
            ids = [id for _, id in wrong(field("id", "job")) if isinstance(id, str)]
            before, place = ([], "id") if path == "id" else ([WAITING], "ids[1]")
            yield from (Case(name, [*before, id], "INVALID", place) for id in ids)
        spec, known = base_of(name), set(BY_HAND) - {"forget"}
        for error in one.errors if "spec" in one.positions and name not in known else ():
            if error.code == "NOTFOUND" and error.path in spec:
                is_job = one.named[error.path].type == "job"
                unknown = encode(spec | {error.path: UNKNOWN if is_job else "unknown"})
                yield Case(name, wrapped(name, unknown), "NOTFOUND", error.path)
        if one.positions == ("id",):
            yield Case(name, [UNKNOWN], "NOTFOUND", "id")


# ---- records for import: what is wrong with one comes before that the namespace is set up ----

SCHEMA = 11  # of meta.lua


def key(suffix: Any = "seq", kind: Any = "string", ttl_ms: float = 0, content: Any = ("1",)) -> list[Any]:
    return ["key", suffix, kind, ttl_ms, content]


RECORDS: list[Any] = [
    5, {"a": 1}, [], ["other", 1], ["key"], ["begin", "3", "0" * 16], ["begin", SCHEMA], ["begin", SCHEMA, "1" * 16],
    ["end", "0" * 16, b"\0\3"], key("meta"), key("manifest"), key("import"), key(""), key(5), key(kind="json"),
    key(kind=5), key(ttl_ms=-1), key(ttl_ms=INFINITE), key(kind="list"), key(content=[]), key(content=[1]),
    key(content="1"), key(content=["1", "2"]), key(content={"a": "b"}), key(kind="set", content=["1", None, "2"]),
    key(kind="hash", content=["1"]), key(kind="zset", content=["1"]),
    *(key(kind="zset", content=["1", score]) for score in ("x", "nan", "0x1", "1e999", "1e-999")),
    key(kind="stream", content=["1-1", "2", "a", "b"]), key("events"),
]  # fmt: skip
BYTES = [b"", b"\xc1", b"\x93", b"\xc0\xc0", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\0" * 2**20]


def pack(record: Any) -> bytes:
    return bytes(msgpack.packb(record, use_bin_type=False))


def of_import() -> Iterator[Case]:
    good, end = pack(key()), pack(["end", "0" * 16, f"\0{SCHEMA:c}" + "\0" * 252])
    yield from (Case("import", args, "INVALID", "records") for args in ([], [good] * 1001))
    yield from (Case("import", [good, one], "INVALID", "records[1]") for one in (*map(pack, RECORDS), *BYTES))
    yield Case("import", [end, good], "INVALID", "records[0]")
    yield Case("import", [good], "CONFLICT", None)
    for schema in (SCHEMA - 1, SCHEMA + 1):
        yield Case("import", [pack(["begin", schema, "0" * 16])], "VERSION", None)


CASES = [*TYPED, *by_hand(), *of_import()]
BY_SCRIPT: dict[str, list[Case]] = defaultdict(list)
for _case in CASES:
    BY_SCRIPT[_case.script].append(_case)
