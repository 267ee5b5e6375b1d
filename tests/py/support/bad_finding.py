"""Wrong descriptions of jobs, and what else scripts that look for jobs refuse, by the path of the error."""

from bad_values import DONE, NAMES, NAN, NOT_TEXT, UNKNOWN, WAITING, encode, numbers

STATES = [5, True, "", "ready", "Queued", [], ["queued", "x"], ["queued"] * 10, {"a": "queued"}, [1]]
WHERE = {
    "queue": NAMES, "status": STATES, "name": NAMES, "tag": NAMES, "group": NAMES,
    "from_ms": numbers(0, 2**53), "to_ms": numbers(0, 2**53), "message": [*NOT_TEXT, "", "x" * 1025],
    "worker": NAMES, "slower_ms": numbers(0, 2**53), "argument": [*NOT_TEXT, "", "x" * 1025],
    "match": [5, True, "x", [1], {}],
}  # fmt: skip
WHERES = [5, True, "x", [1], ["queue"]]
ID = "00000000000000"
CURSORS = [
    5, True, [], {"a": 1}, "x", ":", "::::", "1:q:0:" + ID + ":a", "1:qw:0:" + ID[1:] + ":a", "1:qw:0::a",
    "1:qw::" + ID + ":a", "1:qw:.:" + ID + ":a", "1::0:" + ID + ":", "-1:qw:0:" + ID + ":a",
    "1:qw:0:" + ID + ":", "x" * 2**20, f"{NAN}:qw:0:{ID}:a",
]  # fmt: skip


def of_finding(invalid, refused):
    """What one field alone does not show."""
    for script in ("retry", "discard", "cancel"):
        both = {"ids": [WAITING], "where": {}}
        yield invalid(script, "ids and where", "ids", encode(both), says="both")
        for field, value in (("cursor", ""), ("count", 1)):
            yield invalid(script, f"ids and {field}", field, encode({"ids": [WAITING], field: value}))
        yield invalid(script, "second id wrong", "ids[1]", encode({"ids": [WAITING, "x"]}))
    yield invalid("cancel", "atomic, with where", "atomic", encode({"where": {}, "atomic": True}))
    yield refused("cancel", "one of all that is not there", "NOTFOUND", "ids[1]",
                  {"ids": [WAITING, UNKNOWN], "atomic": True})  # fmt: skip
    yield refused("cancel", "one of all that has ended", "CONFLICT", "ids[1]", {"ids": [WAITING, DONE], "atomic": True})
    yield invalid("cancel", "dependents to refuse, with where", "dependents",
                  encode({"where": {}, "dependents": "refuse"}))  # fmt: skip
    for where in ({"tag": "t"}, {"group": "g"}, {"queue": "b"}):
        spec = {"where": where, "cursor": "1:qw:0:" + ID + ":a"}
        yield invalid("jobs", f"a cursor of another place than {where}", "cursor", encode(spec))
    for match, place in (
        ({"argument.": 1}, "argument."), ({"customer": 1}, "customer"), ({"priority": "x"}, "priority"),
        ({"argument.a": {"like": 1}}, "argument.a.like"),
        ({"any": [{"name": 5}]}, "any[0].name"),
    ):  # fmt: skip
        yield invalid("jobs", f"match {match}", f"where.match.{place}", encode({"where": {"match": match}}))
    for field, value in (("cursor", ""), ("count", 1)):
        yield invalid("failures", f"group and {field}", field, encode({"group": "g", field: value}), says="group")
    yield invalid("failures", "no time for steps", "from_ms", encode({"from_ms": 1, "to_ms": 2}), says="steps")
    yield invalid("failures", "an end before the begin", "to_ms", encode({"steps": 1, "from_ms": 2, "to_ms": 2}))
    yield invalid("tags", "top and cursor", "top", encode({"top": 1, "cursor": ""}), says="both")
    yield invalid("tags", "top and count", "top", encode({"top": 1, "count": 1}), says="both")
    yield refused("forget", "one that has jobs", "CONFLICT", "name", {"name": "a"})
