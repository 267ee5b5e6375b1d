"""Bad records for import. What is wrong with a record comes before that the namespace is set up."""

import msgpack

SCHEMA = 7  # of meta.lua
KEY = ["key", "seq", "string", 0, 0, ["1"]]


def _key(suffix="seq", kind="string", ttl_ms=0, at=0, content=("1",)):
    return ["key", suffix, kind, ttl_ms, at, content]


# Those that are wrong by themselves.
RECORDS = {
    "no list": 5, "a map": {"a": 1}, "empty": [], "unknown": ["other", 1], "a key alone": ["key"],
    "a schema that is none": ["begin", "3", "0" * 16], "no name": ["begin", SCHEMA],
    "a second beginning": ["begin", SCHEMA, "1" * 16], "meta too short": ["end", "0" * 16, b"\0\3"],
    "meta as a key": _key("meta"), "the manifest": _key("manifest"), "the import's own": _key("import"),
    "no suffix": _key(""), "a number as suffix": _key(5), "an unknown type": _key(kind="json"),
    "a type that is none": _key(kind=5), "a negative ttl": _key(ttl_ms=-1),
    "an endless ttl": _key(ttl_ms=float("inf")), "half a place": _key(at=0.5), "no content": _key(content=[]),
    "numbers": _key(content=[1]), "content that is no list": _key(content="1"),
    "two strings": _key(content=["1", "2"]), "a map as content": _key(content={"a": "b"}),
    "content with a hole": _key(kind="set", content=["1", None, "2"]),
    "a field alone": _key(kind="hash", content=["1"]), "a member alone": _key(kind="zset", content=["1"]),
    "a score that is none": _key(kind="zset", content=["1", "x"]),
    "not a number": _key(kind="zset", content=["1", "nan"]),
    "hexadecimal": _key(kind="zset", content=["1", "0x1"]),
    "too large a score": _key(kind="zset", content=["1", "1e999"]),
    "too small a score": _key(kind="zset", content=["1", "1e-999"]),
    "a stream": _key(kind="stream", content=["1-1", "2", "a", "b"]), "events": _key("events"),
}  # fmt: skip
BYTES = [b"", b"\xc1", b"\x93", b"\xc0\xc0", b"\xdd\xff\xff\xff\xff", b"\x91" * 100_000, b"\0" * 2**20]


def pack(record):
    return msgpack.packb(record, use_bin_type=False)


def of_copying(invalid, case):
    good = pack(_key())
    yield invalid("import", "nothing", "records")
    yield invalid("import", "1001 records", "records", *[good] * 1001)
    for what, record in RECORDS.items():
        yield invalid("import", what, "records[1]", good, pack(record))
    for blob in BYTES:
        yield invalid("import", f"{len(blob)} bytes {blob[:8]!r}", "records[1]", good, blob)
    end = pack(["end", "0" * 16, f"\0{SCHEMA:c}" + "\0" * 252])
    yield invalid("import", "more behind the end", "records[0]", end, good)
    yield case("import: into what is set up", "import", [good], "CONFLICT", None)
    for what, schema in (("an older", SCHEMA - 1), ("a newer", SCHEMA + 1)):
        yield case(f"import: {what} schema", "import", [pack(["begin", schema, "0" * 16])], "VERSION", None)
