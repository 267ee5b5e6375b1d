"""What each field of a spec refuses: made of the heads of scripts and of the table of a job's fields, where they have
it."""

from kinds import schema_of

from bad_constraints import BY, COSTS, FAIR, HOLD_SECONDS, TAGS
from bad_finding import WHERES
from bad_following import DEPENDS
from bad_values import (
    BOOLEANS,
    HOLD,
    IDS,
    INFINITE,
    NAMES,
    NAN,
    NOT_TEXT,
    QUEUES,
    RUNNING,
    TIMES,
    TOKENS,
    WAITING,
    WEBHOOK_URLS,
    Raw,
    integers,
    numbers,
    words,
)
from jqmaster.manifest.fields import FIELDS
from jqmaster.manifest.manifest import operations

LISTS = [5, True, "x", {"a": 1}]
MAPS = [5, True, "x", [1]]
CURSOR = [5, True, [], {"a": 1}]
STARRED = [*NAMES, "a*", "*"]
HEADERS = [
    5, True, False, "text", ["a"], {"a": 1}, {"a": {"b": "c"}}, {"": "a"}, {1: "a"}, {"x" * 256: "a"},
    {"a": "b\n"}, {"a": "x" * 1025}, {"a": "x" * 600, "b": "x" * 600}, {f"k{i}": "v" for i in range(17)},
    {"a\0": "b"}, {"a": Raw(b"\xa1\xff")},
]  # fmt: skip
HOLDS = [
    1, 0, True, {}, [HOLD], "", "1", "-", "0-", "01-", "1-x", "1-A", "1 -a", "1-a ", "-1-a", "1-a-b", "1.5-a",
    "1-a\0", "1-" + "0" * 22,
]  # fmt: skip
# What a type refuses; and what some arguments do, of which the type does not say all. An empty map passes for an empty
# list.
TYPES = {
    "name": NAMES, "queue": NAMES, "worker": NAMES, "token": TOKENS, "flag": BOOLEANS, "cursor": CURSOR,
    "Where": WHERES, "By": BY, "Cost": COSTS, "list<queue>": QUEUES, "moment_ms": numbers(0, 2**53), "zone": NAMES,
    "job": IDS, "list<job>": [*LISTS, [], [WAITING] * 1001],
}  # fmt: skip
ARGUMENTS = {
    ("hold", "seconds"): HOLD_SECONDS, ("queue", "fair"): FAIR, ("queue", "set"): MAPS[:3],
    ("queue", "max_waiting"): [-1, 1.5, "1", True, NAN, INFINITE, []],
    ("forget", "name"): STARRED, ("audit", "cursor"): [*CURSOR, "", "x", "-1"],
    ("export", "cursor"): [*CURSOR, "x", "00", "c0"], ("trail", "cursor"): [*CURSOR, "x", RUNNING.upper()],
    ("marks", "cursor"): [*CURSOR, "x", "0" * 13],
    ("release", "jobs"): [*LISTS, []], ("heartbeat", "jobs"): LISTS,
    ("pick", "without"): [*LISTS, [], [f"n{n}" for n in range(101)]],
}  # fmt: skip


def sized(kind, least, most):
    """Wrong integers; Redis reads what does not fit into 63 bits as negative: 2**64 - 1 is -1."""
    if kind == "integer":
        return [value for value in integers(int(least), int(most)) if least >= 0 or value != 2**64 - 1]
    return numbers(least, most)


def of_argument(script, argument):
    """What an argument of an operation refuses; None where its head does not say enough."""
    type_ = argument.of
    if known := ARGUMENTS.get((script, argument.name)) or TYPES.get(argument.type):
        return known
    if type_.words:
        return words(*type_.words)
    if argument.type in ("integer", "number", "seconds", "moment") and argument.most is not None:
        return sized(argument.type, argument.least, argument.most)
    if type_.kind == "list":
        return [*LISTS, *([[]] if argument.least else []), [WAITING] * (int(argument.most or 0) + 1)]
    if argument.type == "message":
        return NOT_TEXT
    if argument.type in ("text", "url"):
        other = [*NOT_TEXT, *([""] if argument.least else []), "x" * int((argument.most or 0) + 1)]
        return None if argument.most is None else other
    return MAPS if type_.kind in ("map", "document") else None


OF = {
    name: {argument.name: of_argument(name, argument) for argument in one.arguments}
    for name, one in operations().items()
}


def of(script, *names, **more):
    """The wrong values of fields of a script, and of such as the table does not have, or not exactly."""
    return {name: OF[script][name] for name in names} | more


def of_job(field):
    """Of a kind that has no list here, what the schema does not allow."""
    kinds = {"name": NAMES, "boolean": BOOLEANS, "names": TAGS, "jobs": DEPENDS, "texts": HEADERS, "url": WEBHOOK_URLS}
    if field.kind in kinds:
        return STARRED if field.name == "queue" else kinds[field.kind]
    schema = schema_of(field)
    if "minimum" in schema:
        return sized(schema["type"], schema["minimum"], schema["maximum"])
    if "enum" in schema:
        return words(*schema["enum"])
    least, most = schema.get("minLength", 0), schema["maxLength"]
    return [*(name for name in NAMES if name or least), "x" * (most + 1), "x" + "é" * (most // 2)]


WRONG = {field.name: of_job(field) for field in FIELDS}
UNIQUE = {field.name: WRONG[field.name] for field in FIELDS if "unique" in (field.name, field.needs)}
JOB = {name: values for name, values in WRONG.items() if name not in UNIQUE}
CHANGES = (
    {"id": IDS}
    | {one.name: WRONG[one.name] for one in FIELDS if one.changed}
    | {"tags": [tags for tags in TAGS if tags != []]}
)
MOVE = {name: WRONG[name] for name in ("name", "queue", "priority", "delay")}
RESUME = {"depends": WRONG["depends"], "if_failed": WRONG["if_failed"], "checkpoint": BOOLEANS}
PAGE = {"cursor": CURSOR, "count": integers(1, 1000)}
PICK = of(
    "pick", "queues", "count", "order", "without", "request", wait=[5, True, "push", 1.5],
)  # fmt: skip
RATE = {"limit": integers(1, 10**9), "period": numbers(0.001, 31536000), "smooth": BOOLEANS}
OF_QUEUES = {
    **{name: WRONG[name] for name in ("retry_base", "retry_cap", "retry_jitter")},
    "result_ttl": numbers(1, 1e10), "result_grace": numbers(0, 1e10),
    "late_after": numbers(1, 1e10),
    **{f"{state}_ttl": numbers(0, 1e10) for state in ("done", "error", "cancelled")},
    **{f"{state}_max": integers(0, 10**9) for state in ("done", "error", "cancelled")},
}  # fmt: skip
SETTINGS = OF_QUEUES | {
    "request_ttl": numbers(1, 86400), "cancel_running": BOOLEANS, "worker_ttl": numbers(1, 86400),
    "events_max": integers(0, 10**7), "stats": BOOLEANS, "trail_max": integers(0, 10**6),
}  # fmt: skip
OUTCOME = {"id": IDS, "token": HOLDS, "type": words("success"), "finished_at": TIMES}
FAILURE = {
    "reason": [*words("other"), "expired"], "should_retry": BOOLEANS, "retry_in": numbers(0, 1e10),
    "message": NOT_TEXT, "group": NAMES,
}  # fmt: skip
