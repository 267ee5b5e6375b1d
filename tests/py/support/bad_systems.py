"""Wrong records of systems, and changes of one that is not there."""

from bad_values import Raw, encode, integers

NAMESPACES = ["{model}", "{model:1~0a}"]
RECORD = {
    "format": 1, "generation": 1, "partitions": [[one, "active"] for one in NAMESPACES], "buckets": [0] * 1024,
}  # fmt: skip
MATCH = encode({"name": "a"})
SETTINGS = {
    "config": [{}], "queue": [{"name": "a"}], "forget": [{"queue": "a"}], "unsubscribe": [{"id": "hook"}],
    "subscribe": [{"id": "hook", "url": "http://host/"}, MATCH], "constrain": [{"id": "c", "concurrency": 1}, MATCH],
    "unconstrain": [{"id": "known"}], "revoke": [{"id": "0123456789ab"}],
    "grant": [{"id": "0123456789ab", "digest": "0" * 64, "name": "ann", "roles": ["viewer"]}],
}  # fmt: skip
HAD = {"id": "s", "every": 1, "job": {"name": "a"}, "had": {"made": 1}, "request": "t"}


def targets(target):
    wrong = {"from": integers(0, 10**15)}
    had = {
        "made": integers(0, 10**15), "next_ms": integers(0, 10**15), "last_ms": integers(0, 10**15),
        "last_id": [5, "", "x"], "runs": [5, "a", {"a": 1}, ["0" * 14] * 21],
    }  # fmt: skip
    return [
        target("system", "system", {"from": 0}, wrong, [], lambda spec: [spec, encode(RECORD)]),
        target("options of what is met", "meet", {"request": "t"}, {"request": [5, "", "x" * 201]}, [],
               lambda spec: [spec, encode({"name": "a"}), b"\xc0"], "options"),
        target("had", "schedule", {"made": 1}, had, ["made"],
               lambda spec: [encode({**HAD, "had": Raw(spec)}), b"\xc0"], "had", True),
    ]  # fmt: skip


def of_systems(invalid, refused):
    def wrong(what, path, **fields):
        return invalid("system", what, path, encode({}), encode(RECORD | fields))

    yield invalid("system", "no arguments", "spec")
    yield invalid("system", "two records", "arguments", encode({}), encode(RECORD), encode(RECORD))
    yield invalid("system", "a change without a record", "record", encode({"from": 0}))
    yield invalid("system", "no record", "record", encode({}), b"\5")
    yield invalid("system", "an empty record", "record", encode({}), b"")
    yield refused("system", "a later format", "VERSION", "record", {}, encode(RECORD | {"format": 2}))
    yield refused("system", "a change of no record", "CONFLICT", "from", {"from": 3},
                  encode(RECORD | {"generation": 4}))  # fmt: skip
    yield refused("system", "a change that leaves one out", "CONFLICT", "from", {"from": 0},
                  encode(RECORD | {"generation": 2}))  # fmt: skip
    yield wrong("an unknown field", "record.more", more=1)
    for number in (0, -1, 1.5, "1", True, 10**15 + 1):
        yield wrong(f"generation {number}", "record.generation", generation=number)
    for few in (5, [], RECORD["partitions"][:1], RECORD["partitions"] * 129, {"a": 1}):
        yield wrong(f"partitions {str(few)[:60]}", "record.partitions", partitions=few)
    for one in (5, [], ["{model}"], ["{model}", "asleep"], [5, "active"], ["{model}", "active", 1]):
        yield wrong(f"partition {one}", "record.partitions[1]", partitions=[RECORD["partitions"][0], one])
    yield wrong("others", "record.partitions", partitions=RECORD["partitions"][::-1])
    for buckets in (5, [], [0] * 1023, {"a": 1}):
        yield wrong(f"buckets {str(buckets)[:60]}", "record.buckets", buckets=buckets)
    for number in (-1, 2, 0.5, "0", True):
        yield wrong(f"bucket {number}", "record.buckets[1023]", buckets=[0] * 1023 + [number])
    for routes in (5, ["mail"], {"mail": 5}, {"": "queue"}, {"a\n": "queue"}, {f"q{n}": "queue" for n in range(1001)}):
        yield wrong(f"routes {str(routes)[:60]}", "record.routes", routes=routes)
    for former in (5, ["a"], {"a": 0}, {-1: 0}, {1024: 0}, {0.5: 0}, {0: 2}, {0: -1}, {0: "1"}):
        yield wrong(f"former {former}", "record.former", former=former)
    for moving in (5, {"a": 1}, [0] * 1025):
        yield wrong(f"moving {str(moving)[:60]}", "record.moving", moving=moving)
    for bucket in (-1, 1024, 0.5, "0", True):
        yield wrong(f"bucket {bucket} moving", "record.moving[1]", moving=[0, bucket])
    for moment in (-1, 0.5, "0", True, 2**53 + 2):
        yield wrong(f"moved_ms {moment}", "record.moved_ms", moved_ms=moment)
    for count in (0, 1, 2, 4):
        told = [encode({}), *[encode({"name": "a"}), b"\xc0"] * 2][:count]
        yield invalid("meet", f"{count} arguments", "jobs", *told)
    yield invalid("meet", "1001 jobs", "jobs", encode({}), *[encode({"name": "a"}), b"\xc0"] * 1001)
    yield invalid("meet", "an empty argument", "jobs[0].argument", encode({}), encode({"name": "a"}), b"")
    yield invalid("meet", "no options", "options", b"\5", encode({"name": "a"}), b"\xc0")
    yield invalid("meet", "a wrong job", "jobs[1].name", encode({}), encode({"name": "a"}), b"\xc0",
                  encode({"name": ""}), b"\xc0")  # fmt: skip
    for one in ("x", 5, ""):
        had = {"made": 1, "runs": ["0" * 14, one]}
        yield invalid("schedule", f"a run {one!r} of before", "had.runs[1]", encode({**HAD, "had": had}), b"\xc0")
    yield invalid("schedule", "had without request", "request", encode({**HAD, "request": None}), b"\xc0")
    yield invalid("schedule", "request without had", "request", encode({**HAD, "had": None}), b"\xc0")
    for script, (spec, *more) in SETTINGS.items():
        for moves in (5, "0", [], ["0"], ["0"] * 3, ["0", 5], ["", "0"], ["0", "1"], ["1-g", "1-a"]):
            yield invalid(script, f"settings {moves}", "settings", encode({**spec, "settings": moves}), *more)
        yield refused(script, "settings of another version", "STALE", None, {**spec, "settings": ["7-a", "8-a"]}, *more)
    for number in (-1, 0.5, "0", True, []):
        options = encode({"generation": number})
        yield invalid("enqueue", f"generation {number}", "generation", options, encode({"name": "a"}), b"\xc0")
