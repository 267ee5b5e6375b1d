"""Wrong constraints, matchers, holds and fair queues, by the path that the error must name."""

import msgpack

from bad_values import BLOB, HOLD, INFINITE, NAN, RUNNING, Raw, encode, show

EXT = msgpack.ExtType(5, b"x")
NOT_SCALARS = [[], [1], {}, {"a": 1}, NAN]


def nested(levels, inner):
    for _ in range(levels):
        inner = {"not": inner}
    return inner


def key_twice(key, first, second):
    return Raw(b"\x82" + (encode(key) + encode(first)) + (encode(key) + encode(second)))


MANY = [str(number) for number in range(1001)]

MATCHERS = {
    "match": [
        {}, [], 5, "name", None, True, 1.5, NAN, b"bin", EXT, [{"name": "a"}],
        {5: 1}, {b"name": "a"}, {None: 1}, {f"argument.{number}": 1 for number in range(101)},
        {f"argument.{number}": 1 for number in range(10_000)},
        {"any": [{"name": "a"}] * 100, "queue": "a"}, {"argument": "x" * 70_000},
        {"argument.a": {"in": MANY[:600]}, "argument.b": {"in": MANY[:401]}},
        Raw(b""), Raw(b"\xc1"), Raw(b"\x81\xa4name"), Raw(b"\x81\xa4name\xa1a\xc0"), Raw(b"\x80\x80"),
        Raw(b"\xdf\xff\xff\xff\xff"), Raw(b"\x81\xa4name\xdb\xff\xff\xff\xffabc"),
        Raw(b"\x81\xa3not" * 100_000 + b"\x81\xa4name\xa1a"), Raw(b"\x91" * 60_000 + b"\xc0"),
    ],
    "match.nam": [{"nam": "a"}],
    "match.Name": [{"Name": "a"}],
    "match.id": [{"name": "a", "id": "a"}],
    "match.argumentx": [{"argumentx": 1}],
    "match.": [{"": 1}],
    "match.argument" + ".a" * 33: [{"argument" + ".a" * 33: 1}],
    "match.argument." + "a" * 71 + "...": [{"argument." + "a" * 1016: 1}],
    "match.not.any[0].tag": [{"not": {"any": [{"tag": "a"}]}}],
    "match.any": [{"any": value} for value in [5, "a", None, [], {}, {"name": "a"}, [{"name": "a"}] * 101]]
    + [key_twice("any", [{"name": "a"}], [{"name": "a"}])],
    "match.argument.": [{"argument.": 1}],
    "match.argument..a": [{"argument..a": 1}],
    "match.argument.a.": [{"argument.a.": 1}],
    "match.argument.a\\b": [{"argument.a\\b": 1}],
    "match.name": [
        {"name": value} for value in [5, True, None, 1.5, NAN, "", "x" * 256, "a\n", b"a", EXT, [], {}, MANY]
    ] + [
        {"name": Raw(b"\xa1\xff")},
        key_twice("name", "a", "b"),
    ],
    "match.name[1]": [{"name": ["a", value]} for value in [5, None, "", b"a", ["a"], {}, NAN]],
    "match.name.lt": [{"name": {"lt": value}} for value in [5, None, True, *NOT_SCALARS]],
    "match.name.glob": [{"name": {"glob": value}} for value in [5, None, b"a*", ["a*"]]],
    "match.name.exists": [{"name": {"exists": value}} for value in [0, 1, "true", None, []]],
    "match.name.in": [{"name": {"in": value}} for value in ["a", 5, [], {"a": 1}, None, MANY]],
    "match.name.in[0]": [{"name": {"in": [5]}}, {"name": {"in": [None, "a"]}}],
    "match.name.ne": [{"name": {"ne": value}} for value in [5, None, ["a"]]],
    "match.queue.in[1]": [{"queue": {"in": ["a", "*"]}}],
    "match.priority[1]": [{"priority": [1, 2**64 - 1]}],
    "match.priority.ne": [{"priority": {"ne": value}} for value in ["5", False, None]],
    "match.tags.ne": [{"tags": {"ne": 5}}],
    "match.argument.a.ge": [{"argument.a": {"ge": value}} for value in [True, b"a", NAN]],
    "match.argument.a.exists": [{"argument.a": {"exists": value}} for value in [1, None]],
    "match.argument.a.lt": [{"argument.a": key_twice("lt", 1, 2)}],
    "match.argument.size.lte": [{"argument.size": {"lte": 5}}],
    "match.name.foo": [{"name": {"foo": "a"}}],
    "match.name.EQ": [{"name": {"EQ": "a"}}],
    "match.name.": [{"name": {"": "a"}}],
    "match.name.eq": [{"name": key_twice("eq", "a", "a")}],
    "match.queue": [{"queue": value} for value in [5, "", [], {}]],
    "match.queue.eq": [{"queue": {"eq": "a*"}}],
    "match.priority": [
        {"priority": value} for value in ["1", 1.5, 2**31, -(2**31) - 1, NAN, INFINITE, True, None, b"1", []]
    ],
    "match.priority.lt": [{"priority": {"lt": value}} for value in ["1", True, None, NAN, []]],
    "match.tags": [{"tags": value} for value in [5, "", None, [], {}]],
    "match.tags[0]": [{"tags": [["a"]]}],
    "match.argument": [{"argument": value} for value in [{}, [], NAN]],
    "match.argument.a": [
        {"argument.a": value}
        for value in [{}, [], NAN]
    ],
    "match.argument.a[2]": [{"argument.a": [1, 2, value]} for value in NOT_SCALARS],
    "match.argument.a.eq": [{"argument.a": {"eq": value}} for value in NOT_SCALARS],
    "match.argument.size.lt": [
        {"argument.size": {"lt": value}} for value in [True, None, b"a", EXT, *NOT_SCALARS]
    ],
    # A path has neither blanks nor colons.
    "match.argument.to?the?left.lt": [{"argument.to the:left": {"lt": []}}],
    "match.any[1]": [{"any": [{"name": "a"}, value]} for value in [{}, 5, None, [], "a"]],
    "match.any[1].name": [{"any": [{"name": "a"}, {"name": 5}]}],
    "match.any[0].any[1].not.queue.lt": [{"any": [{"any": [{"name": "a"}, {"not": {"queue": {"lt": 5}}}]}]}],
    "match.not": [{"not": value} for value in [{}, 5, None, [], [{"name": "a"}], "a"]],
    "match.not.nam": [{"not": {"nam": "a"}}],
    "match" + ".not" * 5: [nested(5, {"name": "a"}), nested(300, {"name": "a"})],
}  # fmt: skip

PATHS = [5, True, 1.5, "", "x", "tags", "id", "Argument.x", "argument.", "argument..a", "argument.a\\b"]
PATHS += ["argument." + "x" * 2**20]
BY = [*PATHS, {"a": 1}, [], ["argument.a"] * 5]
COSTS = [-1, -0.5, 1e9 + 1, NAN, INFINITE, -INFINITE, True, [], ["argument.a"], {"a": 1}, "", "x", "name"]
COSTS += ["argument."]
HOLD_SECONDS = [-1, -0.001, 31536001, "1", "", True, [], [1], {"a": 1}, NAN, INFINITE]
TAGS = [5, True, "a", [], {"a": 1}, ["a"] * 33, [str(number) for number in range(33)]]
FAIR = [5, True, "argument.a"]


def of_constraints(invalid, refused):
    """Matchers, and what two fields say together."""
    plain, spec = encode({"name": "a"}), encode({"id": "new", "concurrency": 1})
    for path, matchers in MATCHERS.items():
        for matcher in matchers:
            yield invalid("constrain", f"matcher {show(matcher)} at {path}", path, spec, encode(matcher))
    yield invalid("constrain", "nothing", "arguments")
    yield invalid("constrain", "no matcher", "arguments", spec)
    yield invalid("constrain", "two matchers", "arguments", spec, plain, plain)
    together = {
        "concurrency": [{}, {"by": "name"}],
        "by[1]": [{"concurrency": 1, "by": ["name", path]} for path in PATHS],
    }
    for path, definitions in together.items():
        for definition in definitions:
            what = f"{path} in {show(definition)}"
            yield invalid("constrain", what, path, encode({"id": "new", **definition}), plain)
    for cost, says in (("tokens", '"tokens", did you mean argument.tokens?'), ("priority", 'got "priority"')):
        spec = encode({"id": "new", "rate": {"limit": 1, "period": 1}, "cost": cost})
        yield invalid("constrain", f"cost {cost}", "cost", spec, plain, says=says)
    yield refused("hold", "unknown", "NOTFOUND", "id", {"id": "new", "seconds": 1})
    yield invalid("usage", "prefix where there is no by", "prefix", encode({"id": "known", "prefix": "x"}))
    for by in (None, "x", 5, [], ["x"], ["x", "y", "z"], ["x", ["y"]], ["x", {"a": 1}]):
        spec = {"id": "keyed twice", "seconds": 1, "by": by}
        yield invalid("hold", f"by {show(by)} where it is two", "by", encode(spec))
    yield invalid("hold", "no by where there is one", "by", encode({"id": "keyed", "seconds": 1}))
    yield invalid("hold", "by where there is none", "by", encode({"id": "known", "seconds": 1, "by": "x"}))
    held = {"worker": "w", "jobs": [[RUNNING, HOLD]]}
    unknown = {"known": 1, "new": 1}
    yield refused("release", "unknown constraint", "NOTFOUND", "hold.new", {**held, "hold": unknown})
    for seconds in HOLD_SECONDS:
        spec = {**held, "hold": {"keyed": 1, "known": seconds}}
        yield invalid("release", f"hold for {show(seconds)}", "hold.known", encode(spec))
    for weight in (0, -1, 0.0009, 1001, "1", True, [], NAN, INFINITE):
        spec = encode({"name": "a", "fair": {"by": "name", "weights": {"b": 1, "a": weight}}})
        yield invalid("queue", f"weight {show(weight)}", "fair.weights.a", spec)
    twice = encode({"name": "a", "tags": ["a", "b", "a"]})
    yield invalid("enqueue", "a tag twice", "jobs[0].tags[2]", twice, BLOB)
    for name in ("", 5, "\0", "x" * 256):
        yield invalid("enqueue", f"second of tags {show(name)}", "jobs[0].tags[1]",
                      encode({"name": "a", "tags": ["a", name]}), BLOB)  # fmt: skip
    yield invalid("constraints", "ids and count", "count", encode({"ids": ["a"], "count": 1}))
