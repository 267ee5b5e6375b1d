"""What a program declares beside its jobs: limits and schedules, brought by workers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from app_support import jq, working
from jqmaster import JQ, MessagePack
from servers import RedisServer
from topologies import until

__all__ = ["jq"]


def trail(jq: JQ) -> list[tuple[str, str]]:
    """What was changed, oldest first, and of what."""
    return [(one["what"], one["on"]) for one in jq.each("trail")][::-1]


def program(jq: JQ, concurrency: int = 1, every: float = 3600) -> None:
    """What one file of a program says, or its next version."""

    @jq.limit(by="argument.customer", concurrency=concurrency)
    @jq.schedule(every=every, args=("acme",))
    @jq.job
    def mail(customer: str) -> None: ...

    jq.limit({"name": "mail*"}, id="all-mails", rate={"limit": 1000, "period": timedelta(minutes=1)})


def again(jq: JQ, **other: Any) -> JQ:
    """The program in another process, perhaps in another version."""
    new = JQ(jq.url, namespace=jq.namespace if jq.target.is_redis else None)
    program(new, **other)
    return new


def test_a_worker_brings_limits(jq: JQ) -> None:
    program(jq)
    jq.burst()
    found = {one["id"]: one for one in jq.each("constraints")}
    assert (found["mail"]["match"], found["mail"]["by"]) == ({"name": "mail"}, "argument.customer")
    assert found["mail"]["concurrency"] == 1
    assert found["all-mails"]["rate"] == {"limit": 1000, "period": 60}
    assert trail(jq) == [("constrain", "mail"), ("constrain", "all-mails"), ("schedule", "mail")]


def test_what_is_unchanged_is_not_written_again(jq: JQ) -> None:
    program(jq)
    jq.burst()
    before = trail(jq)
    again(jq).burst()
    assert trail(jq) == before


def test_what_an_operator_changed_stays(jq: JQ) -> None:
    program(jq)
    jq.burst()
    jq.operations.constrain("mail", {"name": "mail"}, concurrency=50)
    jq.repeat("mail", jq.tasks["mail"].job("acme"), every=60, paused=True)
    again(jq).burst()
    [limit] = [one for one in jq.each("constraints") if one["id"] == "mail"]
    assert (limit["concurrency"], "by" in limit) == (50, False)
    [schedule] = jq.operations.schedules(["mail"]).documents
    assert (schedule["every"], schedule["paused"]) == (60, True)


def test_what_cannot_be_brought_keeps_nothing_else_away(jq: JQ) -> None:
    is_away = False

    class Store(MessagePack):
        def dumps(self, value: Any) -> bytes:
            if is_away and value == {"customer": "acme"}:
                raise OSError("the store is away")
            return super().dumps(value)

    jq.serializer = Store()

    @jq.schedule(id="bob", every=3600, args=("bob",))
    @jq.schedule(id="acme", every=3600, args=("acme",))
    @jq.job
    def mail(customer: str) -> None: ...

    is_away = True
    jq.burst()
    assert [one["id"] for one in jq.each("schedules")] == ["bob"]


def test_they_come_later_where_the_server_is_away() -> None:
    with RedisServer() as server:
        jq = JQ(server.url)
        program(jq)
        server.kill()
        with working(jq):
            server.start()
            until(
                lambda: (
                    [one["id"] for one in (*jq.each("constraints"), *jq.each("schedules"))]
                    == ["all-mails", "mail", "mail"]
                )
            )
        jq.close()


WRONG: list[tuple[str, Callable[[JQ, Any], object], type[Exception]]] = [
    ("did you mean concurrency?", lambda jq, f: jq.limit(f, concurency=1), TypeError),
    ("give the limit an id", lambda jq, f: jq.limit({"name": "mail"}, concurrency=1), TypeError),
    ("goes above @jq.job", lambda jq, f: jq.limit(lambda: None, concurrency=1), TypeError),
    ("a limit mail already", lambda jq, f: [jq.limit(f, concurrency=1) for _ in range(2)], ValueError),
]  # fmt: skip


@pytest.mark.parametrize(("said", "declares", "kind"), WRONG, ids=[f"{n} {said}" for n, (said, *_) in enumerate(WRONG)])
def test_what_cannot_be_raises_where_it_stands(said: str, declares: Callable[[JQ, Any], object], kind: Any) -> None:
    jq = JQ("redis://127.0.0.1:9")

    @jq.job
    def mail(customer: str, *, size: int = 1) -> None: ...

    with pytest.raises(kind) as caught:
        declares(jq, mail)
    assert said in str(caught.value)


# -- schedules ------------------------------------------------------------------------------------


async def test_workers_bring_their_schedules(jq: JQ, caplog: pytest.LogCaptureFixture) -> None:
    @jq.schedule(id="nightly", cron="0 3 * * *", args=("all",), options={"priority": 2})
    @jq.schedule(every=3600)
    @jq.job
    def clean(what: str = "some") -> None: ...

    await jq.aburst()
    [nightly] = (await jq.acall("schedules", ["nightly"])).documents
    assert (nightly["cron"], nightly["job"]["priority"], nightly["job"]["name"]) == ("0 3 * * *", 2, "clean")
    assert nightly["argument"] == {"what": "all"}
    await jq.aoperations.unschedule("nightly")
    with pytest.raises(ValueError, match="there is a schedule nightly already"):
        jq.schedule(id="nightly", every=1)(clean)
    with pytest.raises(TypeError):
        jq.schedule(every=1)(lambda: None)  # type: ignore[type-var]
    jq.schedule(id="wrong", cron="0 24 * * *")(clean)
    with pytest.raises(ValueError, match='schedule wrong: INVALID cron: hour "24" is not understood'):
        await jq.aburst()


async def test_a_new_rule_of_a_time_zone_is_another_declaration(jq: JQ, monkeypatch: pytest.MonkeyPatch) -> None:
    from jqmaster.engine import zones

    @jq.schedule(cron="0 3 * * *", timezone="Europe/Berlin")
    @jq.job
    def clean() -> None: ...

    await jq.aburst()
    monkeypatch.setattr(zones, "rule", lambda name: "CET-1")
    await jq.aburst()
    assert len([one async for one in jq.aeach("trail")]) == 2
