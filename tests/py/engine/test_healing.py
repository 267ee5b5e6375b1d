"""What the engine raises, and what it brings back when Redis has lost it."""

from __future__ import annotations

import pytest
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import OutOfMemoryError, ResponseError

from jqmaster.bundle.build import Bundle, builtin, make_script
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import (
    Conflict,
    Full,
    Internal,
    Invalid,
    JQError,
    Lost,
    NotFound,
    Unavailable,
    Version,
    from_redis,
    parse,
)
from servers import RedisServer
from topologies import Proxy

NIL = b"\xc0"


class TestErrors:
    @pytest.mark.parametrize("value", [2**70, object(), "\ud800"])
    async def test_what_cannot_be_packed_is_invalid(self, engine: Engine, value: object) -> None:
        with pytest.raises(Invalid) as caught:
            await engine.enqueue([({"name": "a"}, NIL), ({"name": "a", "priority": value}, NIL)])
        assert caught.value.path == "jobs[1].priority"
        with pytest.raises(Invalid, match=r"set\.retry_cap: cannot be packed as MessagePack"):
            await engine.config({"retry_cap": value})

    @pytest.mark.parametrize(
        "text, kind, path, message",
        [
            ("INVALID jobs[3].priority: expected x: y", Invalid, "jobs[3].priority", "expected x: y"),
            ("NOTFOUND worker", NotFound, None, "worker"),
            ("CONFLICT request: used with other arguments", Conflict, "request", "used with other arguments"),
            ("LOST", Lost, None, ""),
            ("FULL jobs[0].queue: 3", Full, "jobs[0].queue", "3"),
            (
                "VERSION namespace {jq} is not set up: load",
                Version,
                None,
                "namespace {jq} is not set up: load",
            ),
            ("INVALID spec: line one\nline two", Invalid, "spec", "line one\nline two"),
        ],
    )
    def test_error_replies(self, text: str, kind: type[JQError], path: str | None, message: str) -> None:
        error = parse(text)
        assert type(error) is kind and (error.path, error.message) == (path, message)
        assert error.code == text.split()[0]

    @pytest.mark.parametrize("text", ["", "ERR unknown command", "INVALIDATED x", "invalid x", "WRONGTYPE x"])
    def test_other_text_is_none_of_ours(self, text: str) -> None:
        assert parse(text) is None

    def test_problems_of_redis(self) -> None:
        original = OutOfMemoryError("OOM command not allowed when used memory > 'maxmemory'.")
        error = from_redis(original)
        assert isinstance(error, Unavailable) and error.cause is original and "OOM" in str(error)
        assert isinstance(from_redis(RedisConnectionError("refused")), Unavailable)
        lua = from_redis(ResponseError("user_script:3: attempt to index a nil value script: ab, on @user_script:3."))
        assert isinstance(lua, Internal)
        lua = from_redis(ResponseError("user_function:3: bad script: jq_1_pick, on @user_function:3."))
        assert isinstance(lua, Internal)

    async def test_a_call_whose_reply_was_lost_is_not_made_again(
        self, engine: Engine, redis_server: RedisServer
    ) -> None:
        async with Proxy(redis_server) as proxy, connect(proxy.url) as client:
            await client.ping()
            proxy.loses = lambda: not proxy.lost
            with pytest.raises(Unavailable):
                await Engine(client, engine.namespace).enqueue([({"name": "a"}, NIL)])
        [document] = (await engine.queues(["a"])).documents
        assert document["queued"] == 1


class TestHealing:
    async def test_a_script_that_keeps_vanishing_ends_in_an_error(self, redis: Redis, namespace: str) -> None:
        wrong = make_script("setup", builtin()["setup"].source, "write")
        object.__setattr__(wrong, "sha", "0" * 40)
        engine = Engine(redis, namespace, scripts=Bundle(builtin(), setup=wrong))
        with pytest.raises(Unavailable, match="NOSCRIPT"):
            await engine.setup()
