"""scripts/common.txt names what the plain life of a job needs, and in which operations, near enough: `make records`
writes it anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgpack

from jqmaster.bundle.build import parsed
from jqmaster.bundle.link import link_script, reached_by
from servers import RedisServer

ROOT = Path(__file__).resolve().parents[3]
COMMON = ROOT / "scripts" / "common.txt"
KEYS = ("{r}", "{r}:meta")


def needed(server: RedisServer) -> set[tuple[str, str]]:
    """Labels of what a job needs that is enqueued, picked and finished, when others were before it; each with the
    operation that needs it."""
    scripts = {script.name: script for _, _, script in parsed(ROOT)}
    found = set()
    with server.client() as client:

        def call(operation: str, *arguments: object) -> Any:
            client.delete("needed")
            packed = [value if isinstance(value, bytes) else msgpack.packb(value) for value in arguments]
            # Without a first line a script may write what is not its own.
            text = link_script(scripts[operation])  # each item is noted when it is looked for
            text = text.replace("local v\n", 'redis.call("RPUSH", "needed", n)\nlocal v\n', 1)
            reply = client.eval(text, 2, *KEYS, *packed)
            labels = list(map(str, reached_by([scripts[operation]])))
            found.update((labels[int(number) - 1], operation) for number in client.lrange("needed", 0, -1))
            return reply

        call("setup")
        for _ in range(3):
            found.clear()
            for _ in range(3):
                call("enqueue", {"name": "mail"}, b"\xc0")
            for number in range(3):
                job = msgpack.unpackb(call("pick", {"worker": "w", "queues": "mail"})[1])
                outcome = {"id": job["id"], "token": job["token"], "type": "success"}
                next_ = {"pick": {"queues": "mail"}} if number == 1 else {}
                call("finish", {"worker": "w", **next_}, outcome, b"\xc0")
                if next_:
                    break
    return found


def test_what_is_common_is_listed(fresh_server: RedisServer) -> None:
    lines = map(str.split, COMMON.read_text().splitlines())
    listed = {(label, operation) for label, *operations in lines for operation in operations}
    found = needed(fresh_server)
    assert len(found & listed) > 0.8 * len(found | listed), "make records writes it anew"


if __name__ == "__main__":
    with RedisServer() as server:
        by_label: dict[str, list[str]] = {}
        for label, operation in sorted(needed(server)):
            by_label.setdefault(label, [label]).append(operation)
        COMMON.write_text("".join(" ".join(line) + "\n" for line in by_label.values()))
