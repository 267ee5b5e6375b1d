"""Serializers that encrypt, and that put large values elsewhere."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import msgpack
import pytest

from app_support import transport, working
from jqmaster import JQ, Directory, Encrypted, JobError, MessagePack, Stored, checkpoint, current_job
from jqmaster.errors import NotInstalled

OLD, NEW = Encrypted.new_key(), Encrypted.new_key()
SECRET = "4242 4242 4242 4242"


@pytest.fixture(params=["redis", "http"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def everything(redis_url: str, namespace: str) -> bytes:
    """All that Redis has of a namespace."""
    import redis

    with redis.Redis.from_url(redis_url) as client:
        return b"".join(client.dump(key) or b"" for key in client.scan_iter(match=f"{namespace}*", count=1000))


def test_what_jobs_carry_is_seen_by_nobody_else(kind: str, redis_url: str, namespace: str) -> None:
    with transport(kind, redis_url, namespace, serializer=Encrypted({"2026": NEW})) as jq:

        @jq.job(max_retry=1, retry_base=0)
        def pay(card: str) -> dict[str, str]:
            if current_job.get().attempt == 1:
                checkpoint({"card": f"{card}!"})
                raise ValueError("once more")
            return {"paid with": card}

        @jq.job(max_retry=0)
        def fails(card: str) -> None:
            raise ValueError("no")

        paid, failing = pay.enqueue(SECRET), fails.enqueue(SECRET)
        assert paid.document()["argument"] == {"card": SECRET}
        with working(jq):
            assert paid.result(timeout=60) == {"paid with": f"{SECRET}!"}
            with pytest.raises(JobError) as caught:
                failing.result(timeout=60)
        assert caught.value.error["type"] == "ValueError", "errors are not encrypted"
        assert SECRET.encode() not in everything(redis_url, namespace)
        without = JQ(redis_url, namespace=namespace).get(paid.id)
        assert isinstance(without["argument"], msgpack.ExtType) and isinstance(without["result"], msgpack.ExtType)


def test_keys_are_rotated(redis_url: str, namespace: str) -> None:
    old, both, new = Encrypted({"a": OLD}), Encrypted({"b": NEW, "a": OLD}), Encrypted({"b": NEW})
    assert both.loads(old.dumps(SECRET)) == SECRET
    assert new.loads(both.dumps(SECRET)) == SECRET
    with pytest.raises(ValueError, match="the key 'a', which is not among those given"):
        new.loads(old.dumps(SECRET))
    before, after = (JQ(redis_url, namespace=namespace, serializer=one) for one in (old, both))

    @after.job
    def double(number: int) -> int:
        return 2 * number

    handle = before.task("double").enqueue(21)
    after.burst()
    assert after.handle(handle.id).result(timeout=60) == 42


def test_what_was_changed_is_refused() -> None:
    one = Encrypted({"a": OLD, "b": NEW})
    sealed = one.dumps([1, 2])
    code, payload = 74, msgpack.unpackb(sealed).data
    key_id, box = msgpack.unpackb(payload)
    changed = box[:-1] + bytes([box[-1] ^ 1])
    for content in ([key_id, changed], ["b", box], [key_id], 7, [key_id, "text"]):
        with pytest.raises(ValueError, match=r"cannot be decrypted|not among"):
            one.loads(msgpack.packb(msgpack.ExtType(code, msgpack.packb(content))))
    for plain in (msgpack.packb({"a": 1}), msgpack.packb(msgpack.ExtType(5, b"x")), b"\xc7", b""):
        with pytest.raises(ValueError, match="not encrypted"):
            one.loads(plain)
    assert Encrypted({"a": OLD}, reads_plain=True).loads(msgpack.packb({"a": 1})) == {"a": 1}


@pytest.mark.parametrize("key", ["short", "", b"0" * 32, "kein base64!"])
def test_a_key_that_is_none_is_refused_at_once(key: Any) -> None:
    with pytest.raises(ValueError):
        Encrypted({"a": key})
    with pytest.raises(ValueError, match="one at least"):
        Encrypted({})


def test_equal_values_are_known_again(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace, serializer=Encrypted({"a": OLD}))
    pay = jq.task("pay", unique=True)
    assert pay.enqueue(SECRET) == pay.enqueue(SECRET) != pay.enqueue("another")
    [first] = jq.enqueue_many([jq.task("b").job(1)], request="r")
    assert jq.enqueue_many([jq.task("b").job(1)], request="r") == [first]


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.exceptions", None)
    with pytest.raises(NotInstalled, match=r"pip install 'jqmaster\[encryption\]'"):
        Encrypted({"a": OLD})


# -- large values -------------------------------------------------------------------------------------


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_large_values_are_elsewhere(kind: str, redis_url: str, namespace: str, tmp_path: Path) -> None:
    serializer = Stored(Directory(tmp_path), above=1000, inner=Encrypted({"a": OLD}))
    with transport(kind, redis_url, namespace, serializer=serializer) as jq:
        threads = set()

        @jq.job
        async def shout(text: str) -> str:
            threads.add(threading.get_ident())
            return text.upper()

        small, large = shout.enqueue("few"), shout.enqueue("many " * 1000)
        assert len(files(tmp_path)) == 1
        assert [path.stat().st_mode & 0o777 for path in files(tmp_path)] == [0o600]
        with working(jq):
            assert small.result(timeout=60) == "FEW"
            assert large.result(timeout=60) == "MANY " * 1000
        assert large.document()["argument"] == {"text": "many " * 1000}
        assert len(files(tmp_path)) == 2
        assert len(everything(redis_url, namespace)) < 30_000
        assert not any(b"many" in path.read_bytes() for path in files(tmp_path))


def test_a_value_that_is_gone_or_another_fails_its_job(redis_url: str, namespace: str, tmp_path: Path) -> None:
    jq = JQ(redis_url, namespace=namespace, serializer=Stored(Directory(tmp_path), above=10))

    @jq.job
    def length(text: str) -> int:
        return len(text)

    for spoil, said in ((Path.unlink, "not in the store"), (lambda path: path.write_bytes(b"x"), "is another one")):
        handle = length.enqueue("x" * 100)
        for path in files(tmp_path):
            spoil(path)
        jq.burst(raises=False)
        document = handle.document()
        assert document["status"] == "error" and said in document["message"]


def test_equal_values_are_kept_once_and_go_by_age(tmp_path: Path) -> None:
    store = Directory(tmp_path)
    serializer = Stored(store, above=10, inner=MessagePack())
    first, second = serializer.dumps("a" * 100), serializer.dumps("b" * 100)
    assert first == serializer.dumps("a" * 100) and len(files(tmp_path)) == 2
    for path in files(tmp_path):
        os.utime(path, (time.time() - 1000,) * 2)
    serializer.dumps("a" * 100)  # wanted again
    assert store.sweep(500) == 1
    assert serializer.loads(first) == "a" * 100
    with pytest.raises(ValueError, match="not in the store"):
        serializer.loads(second)
    store.delete(files(tmp_path)[0].name)
    store.delete("0" * 64)
    assert files(tmp_path) == []
    for name in ("../etc/passwd", "A" * 64, ""):
        with pytest.raises(ValueError, match="hexadecimal"):
            store.get(name)


def test_a_store_that_waits_holds_up_no_event_loop(redis_url: str, namespace: str, tmp_path: Path) -> None:
    asked: list[int] = []

    class Slow(Directory):
        def get(self, name: str) -> bytes:
            asked.append(threading.get_ident())
            return super().get(name)

    jq = JQ(redis_url, namespace=namespace, serializer=Stored(Slow(tmp_path), above=10))
    loops: list[int] = []

    @jq.job
    async def here(text: str) -> str:
        loops.append(threading.get_ident())
        return text

    handle = here.enqueue("x" * 100)
    with working(jq):
        assert handle.result(timeout=60) == "x" * 100
    assert len(asked) == 2 and not set(asked) & set(loops)
