"""Wrong changes of jobs, dependencies, moves and what follows outcomes, notes of heartbeats."""

from bad_values import (
    BLOB,
    HOLD,
    INFINITE,
    NAN,
    RUNNING,
    WAITING,
    Case,
    encode,
    integers,
    show,
)

DEPENDS = [5, True, "x", {"a": 1}, []]
PROGRESS = ["1", True, [], {"a": 1}, NAN, INFINITE, -INFINITE]
NOTES = {"progress": PROGRESS,
         "message": [5, True, [], {"a": 1}], "argument": integers(0, 0)}  # fmt: skip
NEVER = "f" * 14  # an id that was never given


def of_links(invalid, refused):
    """Unique keys and dependencies."""

    def job(what, path, spec, says=""):
        return invalid("enqueue", what, f"jobs[0].{path}", encode({"name": "a", **spec}), BLOB, says=says)

    yield job("unique_for without unique", "unique_for", {"unique_for": 1})
    yield job("if_exists without unique", "if_exists", {"if_exists": "keep"})
    yield job("unique_within without unique", "unique_within", {"unique_within": 1})
    yield job("unique_within and unique_for", "unique_within", {"unique": "k", "unique_within": 1, "unique_for": 1})
    latest = {"unique": "k", "unique_within": 1, "if_exists": "latest"}
    yield job("unique_within with latest", "if_exists", latest)
    yield job("latest with depends", "depends", {"unique": "k", "if_exists": "latest", "depends": [WAITING]})
    for wrong in (0, 5, -1, 0.5, "x", WAITING.upper(), True, []):
        yield job(f"depends on {show(wrong)}", "depends[1]", {"depends": [WAITING, wrong]})
    yield job("depends on one twice", "depends[1]", {"depends": [WAITING, WAITING]}, "duplicate")
    yield job("depends on 10101", "depends", {"depends": [f"{number:014x}" for number in range(10101)]})
    yield refused("enqueue", "an unknown dependency", "NOTFOUND", "jobs[0].depends[1]",
                  {"name": "a", "depends": [WAITING, NEVER]}, BLOB)  # fmt: skip


def of_changes(invalid, refused):
    """`change` and `kick`."""
    yield invalid("change", "nothing", "jobs")
    yield invalid("change", "a spec alone", "jobs", encode({"id": WAITING, "priority": 1}))
    yield invalid("change", "1001 jobs", "jobs", *[encode({"id": WAITING, "priority": 1}), b""] * 1001)
    yield invalid("change", "nothing to change", "jobs[0]", encode({"id": WAITING}), b"")
    both = {"id": WAITING, "delay": 1, "run_at": 1}
    yield invalid("change", "delay and run_at", "jobs[0].delay", encode(both), b"", says="both")
    right = [encode({"id": WAITING, "priority": 1}), b""]
    wrong = encode({"id": WAITING, "priority": 1.5})
    yield invalid("change", "only the last wrong", "jobs[2].priority", *right * 2, wrong, b"")
    tags = encode({"id": WAITING, "tags": ["a", "a"]})
    yield invalid("change", "a tag twice", "jobs[0].tags[1]", tags, b"")
    yield invalid("kick", "ids and count", "count", encode({"ids": [RUNNING], "count": 1}))
    yield invalid("kick", "second id wrong", "ids[1]", encode({"ids": [RUNNING, "x"]}))
    yield refused("track", "an unknown field", "INVALID", "x", {"ids": [WAITING], "x": 1})
    for field in ("cursor", "count"):
        yield invalid("stats", f"{field} without series", field, encode({"by": "day", field: 1}))


def of_outcomes(invalid, refused):
    """`move`, `resume` and `enqueue` of outcomes."""
    worker = encode({"worker": "w"})
    base = {"id": RUNNING, "token": HOLD, "type": "success"}
    job = encode({"name": "a"})

    def outcome(what, path, spec, *more, says=""):
        said = encode({**base, **spec})
        return invalid("finish", what, f"outcomes[0].{path}", worker, said, BLOB, *more, says=says)

    for field, value in (("move", {"name": "a"}), ("resume", {"depends": [WAITING]}), ("enqueue", 1)):
        failure = {**base, "type": "failure", field: value}
        args = (worker, encode(failure), BLOB, job, BLOB)
        yield invalid("finish", f"failure with {field}", f"outcomes[0].{field}", *args)
    for wrong in (5, True, "x", [1], {}, {"priority": 1}):
        yield outcome(f"move {show(wrong)}", "move", {"move": wrong})
    yield outcome("move to a name with *", "move.name", {"move": {"name": "a*"}})
    yield outcome("move to an unknown field", "move.nam", {"move": {"nam": "a"}}, says="expected one of")
    for wrong in (5, True, "x", [1]):
        yield outcome(f"resume {show(wrong)}", "resume", {"resume": wrong})
    yield outcome("resume and move", "resume", {"resume": {"depends": [WAITING]}, "move": {"name": "a"}})
    yield outcome("resume without such a job", "resume.depends[0]", {"resume": {"depends": [0]}})
    two = {"resume": {"depends": [0, 1]}, "enqueue": 1}
    yield outcome("resume after two of one", "resume.depends[1]", two, job, BLOB)
    yield refused("finish", "resume after one that never was", "NOTFOUND", "outcomes[0].resume.depends[1]",
                  {"worker": "w"}, encode({**base, "resume": {"depends": [WAITING, NEVER]}}), BLOB)  # fmt: skip
    for wrong in (0, 1001, 1.5, "1", True, []):
        yield outcome(f"enqueue {show(wrong)}", "enqueue", {"enqueue": wrong}, job, BLOB)
    yield outcome("enqueue more than there is", "enqueue", {"enqueue": 2}, job, BLOB)
    yield outcome("a job without argument", "enqueue[0].argument", {"enqueue": 1}, job, b"")
    late = encode({"name": "a", "priority": 1.5})
    yield outcome("only the last job wrong", "enqueue[1].priority", {"enqueue": 2}, job, BLOB, late, BLOB)
    yield outcome("a job that is no map", "enqueue[0]", {"enqueue": 1}, b"\x93", BLOB)
    unknown = encode({"name": "a", "depends": [NEVER]})
    yield refused_follow("an unknown dependency", worker, encode({**base, "enqueue": 1}), unknown)


def refused_follow(what, worker, outcome, job):
    args = [worker, outcome, BLOB, job, BLOB]
    return Case(f"finish: {what}", "finish", args, "NOTFOUND", "outcomes[0].enqueue[0].depends[0]")


def of_notes(invalid):
    """What heartbeats say of jobs."""

    def beat(what, path, *jobs_and_blobs, says=""):
        jobs, *blobs = jobs_and_blobs
        return invalid("heartbeat", what, path, encode({"worker": "w", "jobs": jobs}), *blobs, says=says)

    for wrong in (5, True, "x", [1]):
        yield beat(f"notes {show(wrong)}", "jobs[0][2]", [[RUNNING, HOLD, wrong]])
    for field, values in NOTES.items():
        for value in values:
            jobs = [[RUNNING, HOLD], [RUNNING, HOLD, {field: value}]]
            yield beat(f"{field} {show(value)}", f"jobs[1][2].{field}", jobs, BLOB)
    yield beat("an unknown note", "jobs[0][2].progres", [[RUNNING, HOLD, {"progres": 1}]], says="expected one of")
    yield beat("a blob that is not there", "jobs[0][2].argument", [[RUNNING, HOLD, {"argument": 0}]])
    yield beat("an empty blob", "jobs[0][2].argument", [[RUNNING, HOLD, {"argument": 0}]], b"")
    twice = [[RUNNING, HOLD, {"argument": 0}], [WAITING, HOLD, {"argument": 0}]]
    yield beat("a blob named twice", "jobs[1][2].argument", twice, BLOB)
    yield beat("a blob not named", "arguments", [[RUNNING, HOLD, {"argument": 0}]], BLOB, BLOB)
    yield beat("blobs not named", "spec", [[RUNNING, HOLD]], BLOB)


def of_following(invalid, refused):
    yield from of_links(invalid, refused)
    yield from of_changes(invalid, refused)
    yield from of_outcomes(invalid, refused)
    yield from of_notes(invalid)
