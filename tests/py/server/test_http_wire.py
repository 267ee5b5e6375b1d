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
from jqmaster.server import jsonform
from jqmaster.server.http.routes import ROUTES, Route
from jqmaster.server.http_error import HttpError
from jqmaster.server.reader import check

NESTED = b"\x91" * 490 + b"\x01"
# Values that a decoder and encoder in between would change or refuse.
STRANGE = {
    "nil": b"\xc0",
    "one in nine bytes": b"\xd3" + struct.pack(">q", 1),
    "uint64": b"\xcf" + b"\xff" * 8,
    "2^53 and 1": b"\xcf" + struct.pack(">Q", 2**53 + 1),
    "float32": b"\xca" + struct.pack(">f", 0.1),
    "nan": b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01",
    "bin": b"\xc4\x03\x00\xff\x01",
    "not UTF-8": b"\xa2\xff\xfe",
    "ext": b"\xd4\x05\x00",
    "timestamp": b"\xd6\xff\x00\x00\x00\x01",
    "malformed timestamp": b"\xc7\x03\xffabc",
    "empty map": b"\x80",
    "map16 of one": b"\xde\x00\x01\xa1a\x01",
    "integer keys": b"\x82\x01\x02\x03\x04",
    "map as key": b"\x81\x80\x01",
    "a key twice": b"\x82\xa1a\x01\xa1a\x02",
    "key not UTF-8": b"\x81\xa1\xff\x01",
    "deep": NESTED,
    "long text": msgpack.packb("x" * 70_000),
    "looks like JSON's bin": msgpack.packb({"$bin": "AA=="}),
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
        assert answer.status in (200, 201), answer.raw
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
    "no map": (b"\x07", "Expected `object`, got `int`"),
    "truncated": (b"\x82\xa4name\xa1a", "truncated"),
    "trailing": (b"\x81\xa4name\xa1a\x00", "goes on after"),
    "map that lies": (b"\xdf\xff\xff\xff\xff\xa4name\xa1a", "truncated"),
    "bomb": (b"\x82\xa4name\xa1a\xa8argument" + b"\x91" * 100_000 + b"\x01", "nested too deeply"),
    "bomb in a field": (b"\x81\xa4name" + b"\x91" * 490 + b"\x01", "name"),
    "reserved": (b"\x81\xa4name\xc1", "not MessagePack"),
    "integer key": (b"\x81\x01\x02", "Expected `str`, got `int`"),
    "bin key": (b"\x81\xc4\x04name\xa1a", "Expected `str`, got `bytes`"),
    "key not UTF-8": (b"\x81\xa2\xff\xfe\x01", "codec can't decode"),
    "text not UTF-8": (b"\x81\xa4name\xa2\xff\xfe", "valid UTF-8"),
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


def spelled(packed: bytes) -> dict[str, str]:
    return {"$msgpack": base64.b64encode(packed).decode()}


def test_how_json_spells_what_it_lacks() -> None:
    odd = {"ext": msgpack.ExtType(5, b"x"), "low": float("-inf"), "map": {1: {2: [3]}}, "escaped": {"$bin": 1},
           "short": msgpack.Timestamp(1, 1), "late": msgpack.Timestamp(2**40, 0), "time": {"$time": 1}}  # fmt: skip
    plain = {"two": {"$bin": 1, "x": 2}, "big": 2**64 - 1, "one": 1.0}
    shown = json.loads(jsonform.to_json(msgpack.packb({"bin": b"\x00\xff", **odd, **plain})))
    assert shown == {"bin": {"$bin": "AP8="}, **{key: spelled(msgpack.packb(one)) for key, one in odd.items()}, **plain}
    moment = msgpack.packb(msgpack.Timestamp(1769860800, 500_000))
    assert jsonform.to_json(moment) == b'{"$time":"2026-01-31T12:00:00.000500+00:00"}'
    assert jsonform.to_msgpack(b'{"$time": "2026-01-31T13:00:00.0005+01:00"}') == moment
    assert jsonform.to_json(b"\xcb\x3f\xf0" + bytes(6)) == b"1.0"
    for whole in (b"\xa2\xff\xfe", b"\x83\xa1a\x01\xa1a\x02\xa1b" + STRANGE["malformed timestamp"]):
        assert json.loads(jsonform.to_json(whole)) == spelled(whole)
    wide = STRANGE["one in nine bytes"]
    assert jsonform.to_msgpack(json.dumps([spelled(wide)]).encode()) == b"\x91" + wide


def test_one_part_that_json_cannot_show_leaves_the_others_readable() -> None:
    for odd in (STRANGE["nan"], STRANGE["not UTF-8"], STRANGE["a key twice"]):
        bodies = b"\x82\xa2ok\x01\xa4jobs\x91\x82\xa2id\xa1x\xa8argument\x91" + odd
        shown = json.loads(jsonform.to_json(bodies))
        assert shown == {"ok": 1, "jobs": [{"id": "x", "argument": [spelled(odd)]}]}
    deep = b"\x91" * 5000 + b"\x01"
    shown, level = json.loads(jsonform.to_json(deep)), 0
    while isinstance(shown, list):
        [shown], level = shown, level + 1
    assert shown == spelled(deep[level:])


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "not JSON"),
        (b"\xff", "utf-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "Infinity"),
        (b'{"a": 18446744073709551616}', "2**64"),
        (b'{"a": -9223372036854775809}', "2**63"),
        (b'{"a": ' + b"9" * 5000 + b"}", "5000 digits"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"a": "\\udc80", "b": {"$msgpack": "AQ=="}}', "surrogate"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" * 600 + b"]" * 600, "nested too deeply"),
        (b'{"a":' * 600 + b"1" + b"}" * 600, "nested too deeply"),
        (b'{"$bin": "?"}', "$bin"),
        (b'{"$bin": 1}', "$bin"),
        (b'{"$time": 1}', "$time: expected a moment"),
        (b'{"$time": "2026-01-31T12:00:00"}', "$time: expected a moment with its zone"),
        (b'{"$time": "2026-01-31T12:00:00.1234567Z"}', "$time: expected a moment with its zone, of microseconds"),
        (b'{"$time": "0001-01-01T00:00:00+14:00"}', "$time: expected a moment"),
        (b'{"$msgpack": "wQ=="}', "not MessagePack"),
        (b'{"$msgpack": "AAA="}', "goes on"),
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
    keys = st.one_of(st.text(max_size=4), st.integers(-5, 5), st.sampled_from(["$bin", "$time", "$msgpack"]))
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
    st.builds(msgpack.Timestamp, st.integers(-(2**40), 2**40), st.integers(0, 999_999).map(lambda us: us * 1000)),
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


def test_a_level_below_the_limit_is_taken() -> None:
    check(b"\x91" * 490 + b"\x01")
    with pytest.raises(HttpError, match="nested"):
        check(b"\x91" * 510 + b"\x01")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_no_request_takes_a_parameter_that_it_does_not_know(api: Api, route: Route) -> None:
    path = re.sub(r"\{.*?\}", "0" * 14, route.path)
    answer = await api(route.method, f"{path}?quux=1")
    assert (answer.status, answer.error["field"]) == (400, "quux"), answer.raw
