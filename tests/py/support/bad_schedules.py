"""Wrong schedules, by the path that the error must name."""

from bad_values import BLOB, NOT_TEXT, Raw, encode

CRONS = [
    *NOT_TEXT, "", " ", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *",
    "* * 32 * *", "* * * 0 *", "* * * 13 *", "* * * * 8", "-1 * * * *", "1-0 * * * *", "*/0 * * * *", "*/60 * * * *",
    "a * * * *", "1, * * * *", "1,,2 * * * *", "*-5 * * * *", "1-2-3 * * * *", "1/2/3 * * * *",
    "1.5 * * * *", "? * * * *", "1- * * * *", "/5 * * * *", "*5 * * * *", "5* * * * *", "+1 * * * *", "0x1 * * * *",
    "1e1 * * * *", "001 * * * *", "1-* * * * *", "* * * * 5-3", "0 0 30 feb */7", "1," * 500 + "1 * * * *",
    "* * L * *", "* * * * 5#2", "mon * * * *", "* * * * jan", "* * * monday *",
    "@", "@never", "@daily 5", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "* * * * *\0", "é * * * *",
    "*," * 1000 + "* * * * *", "x" * 2**20, Raw(b"\xa1\xff"),
]  # fmt: skip
# Rules of time zones.
RULES = [
    *NOT_TEXT, "", "UTC", "0", "UT0", "U1C0", "UTC25", "UTC+", "UTC0:60", "UTC0 ", " UTC0", "<UTC0", "<>0", "<U T>0",
    "Europe/Berlin", ":CET-1", "CET-1CEST", "CET-1CEST,", "CET-1CEST,M3.5.0", "CET-1CEST,M3.5.0,",
    "CET-1CEST,M3.5.0,M10.5.0,",
    "CET-1CEST,M3.5.0,M10.5.0/", "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,M0.5.0,M10.5.0",
    "CET-1CEST,M13.5.0,M10.5.0",
    "CET-1CEST,M3.0.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0", "CET-1CEST,J0,J5",
    "CET-1CEST,J366,J5", "CET-1CEST,366,5", "CET-1CEST,-1,5", "UTC0,M3.5.0,M10.5.0", "X" * 101 + "0",
    "UTC0\0", "UTC0\n",
]  # fmt: skip


def of_schedules(invalid, refused):
    """What one field alone does not show."""
    base = {"id": "new", "job": {"name": "a"}}

    def wrong(what, path, spec, says=""):
        return invalid("schedule", what, path, encode({**base, **spec}), BLOB, says=says)

    yield invalid("schedule", "nothing", "arguments")
    yield invalid("schedule", "no argument", "arguments", encode({**base, "every": 1}))
    yield invalid("schedule", "two arguments", "arguments", encode({**base, "every": 1}), BLOB, BLOB)
    yield invalid("schedule", "empty argument", "argument", encode({**base, "every": 1}), b"")
    yield wrong("neither every nor cron", "every", {}, "neither")
    yield wrong("both every and cron", "cron", {"every": 1, "cron": "* * * * *"}, "both")
    for field in ("tz", "timezone"):
        yield wrong(f"{field} with every", field, {"every": 1, field: "UTC0"})
    yield wrong("a timezone without its rule", "tz", {"cron": "* * * * *", "timezone": "Europe/Berlin"})
    yield wrong("a job that runs at a moment", "job.run_at", {"every": 1, "job": {"name": "a", "run_at": 5}})
    yield wrong("a job that depends", "job.depends", {"every": 1, "job": {"name": "a", "depends": [0]}})
    yield wrong("a job without a queue", "job.name", {"every": 1, "job": {"name": "a*"}})
    for path, job in (("tags[1]", {"tags": ["x", ""]}), ("unique_for", {"unique_for": 1}), ("name", {"name": "a*"})):
        yield wrong(f"a job with {path}", f"job.{path}", {"every": 1, "job": {"name": "a", **job}})
    for what, path, spec in (("an id that is none", "id", {"id": ""}), ("false", "run", {"id": "known", "run": False})):
        yield invalid("schedule", f"run of {what}", path, encode({"run": True, **spec}))
    yield invalid("schedule", "run with a job", "job", encode({**base, "run": True}))
    yield refused("schedule", "run of one unknown", "NOTFOUND", "id", {"id": "unknown", "run": True})
    yield invalid("schedules", "ids and count", "count", encode({"ids": ["a"], "count": 1}))
    yield invalid("schedules", "too many moments", "ids", encode({"ids": ["a"] * 21, "next": 100}))
