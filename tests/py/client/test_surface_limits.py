"""Constraints as `JQ` is asked for them, straight on Redis and by a master, plain and in coroutines."""

from __future__ import annotations

from jqmaster import JQ
from jqmaster.engine.engine import Engine
from surface_support import Call, call, jq, own, server

__all__ = ["call", "jq", "own", "server"]

MATCH = {"name": "mail"}


async def test_a_constraint_from_beginning_to_end(call: Call) -> None:
    rate = {"limit": 100, "period": 60}
    made = await call("constrain", "mail/ä", MATCH, by="argument.who", concurrency=5, rate=rate, cost=2)
    assert (made["id"], made["match"], made["rate"], made["cost"]) == ("mail/ä", MATCH, rate, 2)
    assert await call("each", "constraints") == [made]
    assert await call("each", "usage", "mail/ä") == []
    replaced = await call("constrain", "mail/ä", match={"tags": "a"}, concurrency=1, order="strict")
    assert (replaced["concurrency"], replaced["order"]) == (1, "strict") and "rate" not in replaced
    await call("call", "unconstrain", "mail/ä")
    assert await call("each", "constraints") == []


async def test_a_key_that_is_held_is_explained(jq: JQ, call: Call, own: Engine) -> None:
    await call("constrain", "c", MATCH, by="argument.who", concurrency=1)
    until_ms = await call("call", "hold", "c", 1000, by="a")
    job = await jq.aenqueue("mail", {"who": "a"})
    assert (await own.pick("w", "mail")).jobs == []
    explained = await call("explain", of=job)
    assert (explained["status"], explained["held"]) == ("queued", True)
    assert explained["constraints"][0]["opens_ms"] == until_ms == explained["start_ms"]
    await call("call", "hold", "c", 0, by="a")
    assert [one.id for one in (await own.pick("w", "mail")).jobs] == [job.id]


async def test_usage_of_more_than_a_page(call: Call, own: Engine) -> None:
    await call("constrain", "c", MATCH, by="argument", concurrency=1)
    # One of the values is text that is not UTF-8, which shows as what stands for such.
    await own.enqueue([({"name": "mail"}, b"\xcd" + number.to_bytes(2, "big")) for number in range(1000)])
    await own.enqueue([({"name": "mail"}, b"\xa1\xff")])
    while (await own.pick("w", "mail", 1000)).next_ms == 0:
        pass
    keys = await call("each", "usage", "c")
    assert {key["by"] for key in keys} == {*range(1000), "\ufffd"} and len(keys) == 1001
