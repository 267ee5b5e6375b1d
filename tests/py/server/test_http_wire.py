"""Arguments and results come back byte for byte; broken bodies are refused; JSON spells every value."""

from __future__ import annotations

import base64
import json
import re
import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from http_support import JSON, Api, api, master  # noqa: F401
from jqmaster.engine import packform
from jqmaster.server import jsonform
from jqmaster.server.http.routes import ROUTES, Route
from jqmaster.server.http_error import HttpError
from jqmaster.server.reader import check

NESTED = b"\x91" * 900 + b"\x01"
# Values that a decoder and encoder in between would change or refuse.
STRANGE = {
    "nil": b"\xc0",
    "one in nine bytes": b"\xd3" + struct.pack(">q", 1),
    "zero in five bytes": b"\xce\x00\x00\x00\x00",
    "uint64": b"\xcf" + b"\xff" * 8,
    "int64": b"\xd3\x80" + b"\x00" * 7,
    "2^53 and 1": b"\xcf" + struct.pack(">Q", 2**53 + 1),
    "float 1.0": b"\xcb" + struct.pack(">d", 1.0),
    "float32": b"\xca" + struct.pack(">f", 0.1),
    "nan": b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01",
    "infinity": b"\xcb" + struct.pack(">d", float("inf")),
    "bin": b"\xc4\x03\x00\xff\x01",
    "bin32": b"\xc6\x00\x00\x00\x01\x00",
    "str32": b"\xdb\x00\x00\x00\x01a",
    "not UTF-8": b"\xa2\xff\xfe",
    "ext": b"\xd4\x05\x00",
    "negative ext": b"\xc7\x03\x80abc",
    "timestamp": b"\xd6\xff\x00\x00\x00\x01",
    "malformed timestamp": b"\xc7\x03\xffabc",
    "empty map": b"\x80",
    "map16 of one": b"\xde\x00\x01\xa1a\x01",
    "array32 of one": b"\xdd\x00\x00\x00\x01\x01",
    "integer keys": b"\x82\x01\x02\x03\x04",
    "nil key": b"\x81\xc0\x01",
    "map as key": b"\x81\x80\x01",
    "a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "key not UTF-8": b"\x81\xa1\xff\x01",
    "deep": NESTED,
    "long text": msgpack.packb("x" * 70_000),
    "looks like JSON's bin": msgpack.packb({"$bin": "AA=="}),
    "looks like JSON's map": msgpack.packb({"a": [{"$map": []}]}),
    "looks like nothing": msgpack.packb({"$unknown": 1, "x": {"$gt": 2}}),
}
strange = pytest.mark.parametrize("blob", STRANGE.values(), ids=STRANGE.keys())


def value_of(document: bytes, key: str) -> bytes:
    """The bytes of one value of a packed map."""
    unpacker = msgpack.Unpacker(None, strict_map_key=False, max_buffer_size=len(document))
    unpacker.feed(document)
    for _ in range(unpacker.read_map_header()):
        name = unpacker.unpack()
        start = unpacker.tell()
        unpacker.skip()
        if name == key:
            return document[start : unpacker.tell()]
    raise KeyError(key)


@strange
async def test_arguments_and_results_pass_byte_for_byte(api: Api, blob: bytes) -> None:
    bodies = (
        ("/job", b"\x83\xa4name\xa1a\xa8argument" + blob + b"\xabkeep_result\xc3"),
        ("/jobs", b"\x81\xa4jobs\x91\x83\xa8argument" + blob + b"\xa4name\xa1a\xabkeep_result\xc3"),
    )
    for path, body in bodies:
        answer = await _raw(api, "POST", path, body)
        assert answer.status == 201, answer.raw
        job_id = answer.value.get("job_id") or answer.value["job_ids"][0]
        assert value_of((await _raw(api, "GET", f"/job/{job_id}")).raw, "argument") == blob
        picked = await _raw(api, "POST", "/pick", msgpack.packb({"queues": "a", "worker": "w"}))
        jobs = value_of(picked.raw, "jobs")
        assert jobs[:1] == b"\x91" and value_of(jobs[1:], "argument") == blob
        token = msgpack.unpackb(value_of(jobs[1:], "token"))
        done = b"\x82\xa6worker\xa1w\xa8outcomes\x91\x84\xa2id" + msgpack.packb(job_id) + TOKEN + msgpack.packb(token)
        done += b"\xa4type\xa7success\xa6result" + blob
        assert (await _raw(api, "POST", "/done", done)).status == 200
        assert (await _raw(api, "GET", f"/job/{job_id}/result")).raw == blob
        assert value_of((await _raw(api, "GET", f"/job/{job_id}")).raw, "result") == blob


TOKEN = b"\xa5token"


async def _raw(api: Api, method: str, path: str, body: bytes | None = None) -> Any:
    """Past the checks against the document, for which these bodies would have to be unpacked."""
    from http_support import MSGPACK, asgi

    headers = {"accept": MSGPACK} | ({} if body is None else {"content-type": MSGPACK})
    return await asgi(api.app, method, path, headers, body or b"")


async def test_errors_of_jobs_pass_byte_for_byte(api: Api) -> None:
    blob = STRANGE["malformed timestamp"]
    job_id = await api.enqueue("a")
    await api.pick("a", worker="w")
    many = b"\x82\xa6worker\xa1w\xa8outcomes\x91\x85\xa2id" + msgpack.packb(job_id) + TOKEN
    many += msgpack.packb(api.tokens[job_id])
    many += b"\xa4type\xa7failure\xacshould_retry\xc2\xa5error" + blob
    answer = await _raw(api, "POST", "/done", many)
    assert answer.value == {"states": ["error"], "job_ids": [[]]}
    assert value_of((await _raw(api, "GET", f"/job/{job_id}")).raw, "error") == blob


BROKEN = {
    "empty": (b"", "empty"),
    "no map": (b"\x07", "expected a map, got int"),
    "text": (b"\xa1a", "expected a map, got str"),
    "truncated": (b"\x82\xa4name\xa1a", "truncated"),
    "cut in a value": (msgpack.packb({"name": "a", "argument": "b" * 50})[:-1], "truncated"),
    "trailing": (b"\x81\xa4name\xa1a\x00", "1 trailing bytes"),
    "map that lies": (b"\xdf\xff\xff\xff\xff\xa4name\xa1a", "truncated"),
    "text that lies": (b"\x81\xa4name\xdb\xff\xff\xff\xffa", "truncated"),
    "arrays that lie": (b"\x81\xa4name" + b"\xdd\xff\xff\xff\xff" * 50, "truncated"),
    "bomb": (b"\x82\xa4name\xa1a\xa8argument" + b"\x91" * 100_000 + b"\x01", "nested too deeply"),
    "map bomb": (b"\x82\xa4name\xa1a\xa8argument" + b"\x81\x01" * 100_000 + b"\x01", "nested too deeply"),
    "bomb in a field": (b"\x81\xa4name" + b"\x91" * 990 + b"\x01", "name"),
    "reserved": (b"\x81\xa4name\xc1", "not MessagePack"),
    "key twice": (b"\x82\xa4name\xa1a\xa4name\xa1b", "name: given twice"),
    "argument twice": (b"\x83\xa8argument\x01\xa4name\xa1a\xa8argument\x02", "argument: given twice"),
    "integer key": (b"\x81\x01\x02", "expected text as key"),
    "bin key": (b"\x81\xc4\x04name\xa1a", "expected text as key"),
    "key not UTF-8": (b"\x81\xa2\xff\xfe\x01", "expected text as key"),
    "text not UTF-8": (b"\x81\xa4name\xa2\xff\xfe", "valid UTF-8"),
    "twice further in": (b"\x82\xa4name\xa1a\xa5queue\x82\xa1a\x01\xa1a\x02", "queue"),
    "map as key further in": (b"\x82\xa4name\xa1a\xa5queue\x81\x80\x01", "queue"),
    "malformed timestamp in a field": (b"\x82\xa4name\xa1a\xa5queue\xc7\x03\xffabc", "not MessagePack"),
}


@pytest.mark.parametrize("path", ["/job", "/jobs", "/done", "/pick", "/worker", "/release", "/worker/heartbeat"])
async def test_a_broken_body_is_refused(api: Api, path: str) -> None:
    for what, (body, message) in BROKEN.items():
        answer = await api.post(path, raw=body, worker_id="w")
        assert (answer.status, answer.error["code"]) == (400, "INVALID"), what
        if path == "/job":
            assert message in answer.error["message"], what
        assert (await api.get("/queues")).value["queues"] == [], what


def _unpack(raw: bytes) -> Any:
    pairs: Any = lambda items: ("map", items)  # noqa: E731
    return msgpack.unpackb(
        raw, strict_map_key=False, unicode_errors="surrogateescape", object_pairs_hook=pairs,
        ext_hook=lambda code, data: ("ext", code, data),
    )  # fmt: skip


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and repr(a) == repr(b)


def test_how_json_spells_what_it_lacks() -> None:
    value = {
        "bin": b"\x00\xff",
        "ext": msgpack.ExtType(5, b"x"),
        "time": msgpack.Timestamp(1, 0),
        "nan": float("nan"),
        "low": float("-inf"),
        "map": {1: 2, None: [3]},
        "escaped": {"$bin": 1},
        "two": {"$bin": 1, "x": 2},
        "big": 2**64 - 1,
        "one": 1.0,
    }
    assert json.loads(jsonform.to_json(msgpack.packb(value))) == {
        "bin": {"$bin": "AP8="},
        "ext": {"$ext": [5, "eA=="]},
        "time": {"$ext": [-1, "AAAAAQ=="]},
        "nan": {"$float": "nan"},
        "low": {"$float": "-inf"},
        "map": {"$map": [[1, 2], [None, [3]]]},
        "escaped": {"$map": [["$bin", 1]]},
        "two": {"$bin": 1, "x": 2},
        "big": 2**64 - 1,
        "one": 1.0,
    }
    assert jsonform.to_json(b"\xa2\xff\xfe") == b'{"$str":"//4="}'
    assert jsonform.to_json(b"\xcb\x3f\xf0" + bytes(6)) == b"1.0"
    twice = b"\x83\xa1a\x01\xa1a\x02\xa1b" + STRANGE["malformed timestamp"]
    assert jsonform.to_json(twice) == b'{"$msgpack":"%s"}' % base64.b64encode(twice)
    wide = base64.b64encode(STRANGE["one in nine bytes"])
    assert jsonform.to_msgpack(b'{"$msgpack": "%s"}' % wide) == STRANGE["one in nine bytes"]


def test_one_part_that_json_cannot_show_leaves_the_others_readable() -> None:
    deep = b"\x91" * 990
    bodies = b"\x82\xa2ok\x01\xa4jobs\x91\x82\xa2id\xa1x\xa8argument" + deep + b"\x01"
    shown = json.loads(jsonform.to_json(bodies))
    assert shown["ok"] == 1 and shown["jobs"][0]["id"] == "x"
    assert base64.b64decode(shown["jobs"][0]["argument"]["$msgpack"]) == deep + b"\x01"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff", "UTF-8"),
        (b'{"a": 1, "a": 2}', "'a' twice"),
        # Looking for it key by key would take minutes.
        pytest.param(
            b'{%s, "last": 1, "last": 2}' % b", ".join(b'"%d": 1' % n for n in range(200_000)),
            "'last' twice",
            id="200,000 keys",
        ),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 1e999}', "range"),
        (b'{"a": 18446744073709551616}', "64 bits"),
        (b'{"a": -9223372036854775809}', "64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "64 bits"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 300 + b"]" * 300, "nested too deeply"),
        (b'{"a":' * 250 + b"1" + b"}" * 250, "nested too deeply"),
        (b'{"$bin": "?"}', "$bin"),
        (b'{"$bin": 1}', "$bin"),
        (b'{"$ext": [200, "AA=="]}', "$ext"),
        (b'{"$ext": [true, "AA=="]}', "$ext"),
        (b'{"$float": "x"}', "$float"),
        (b'{"$map": [[1]]}', "$map"),
        (b'{"$msgpack": "wQ=="}', "not MessagePack"),
        (b'{"$msgpack": "AAA="}', "trailing"),
        (b"", "not JSON"),
        (b'{"a": 1} x', "not JSON"),
        (b"\xef\xbb\xbf{}", "not JSON"),
    ],
)
def test_broken_json_is_refused(body: bytes, message: str) -> None:
    with pytest.raises(HttpError) as caught:
        jsonform.to_msgpack(body)
    assert (caught.value.status, caught.value.code) == (400, "INVALID")
    assert message in caught.value.message


def values(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    keys = st.one_of(st.text(max_size=4), st.integers(-5, 5), st.sampled_from(["$bin", "$map", "$float", "$ext"]))
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=20,
    )


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=8),
    st.binary(max_size=8),
    st.builds(msgpack.ExtType, st.integers(0, 127), st.binary(max_size=8)),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(values(LEAVES))
def test_any_value_survives_json(value: Any) -> None:
    raw = msgpack.packb(value)
    assert same(_unpack(jsonform.to_msgpack(jsonform.to_json(raw))), _unpack(raw))


@settings(max_examples=500, deadline=None, derandomize=True)
@given(st.binary(max_size=40))
def test_any_bytes_are_one_value_or_refused(raw: bytes) -> None:
    try:
        check(raw)
    except HttpError as error:
        assert error.status == 400
        return
    json.loads(jsonform.to_json(raw))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=60))
def test_any_bytes_as_json_are_one_value_or_refused(raw: bytes) -> None:
    try:
        check(jsonform.to_msgpack(raw))
    except HttpError as error:
        assert error.status == 400


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 65535, 65536])
def test_headers_of_every_size(size: int) -> None:
    items = [b"\x01"] * size
    assert packform.raw_array(items) == msgpack.packb([1] * size)
    packed = packform.raw_map({f"k{n}": b"\x01" for n in range(size)})
    assert packed == msgpack.packb({f"k{n}": 1 for n in range(size)})
    longer = packform.extend_map(packed, {"x": b"\x02", "y": b"\x03"})
    assert msgpack.unpackb(longer) == {f"k{n}": 1 for n in range(size)} | {"x": 2, "y": 3}


def test_a_level_below_the_limit_is_taken() -> None:
    check(b"\x91" * 990 + b"\x01")
    with pytest.raises(HttpError, match="nested"):
        check(b"\x91" * 1010 + b"\x01")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_no_request_takes_a_parameter_that_it_does_not_know(api: Api, route: Route) -> None:
    path = re.sub(r"\{.*?\}", "0" * 14, route.path)
    answer = await api(route.method, f"{path}?quux=1")
    assert (answer.status, answer.error["field"]) == (400, "quux"), answer.raw
