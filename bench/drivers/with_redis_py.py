"""The same enqueue by redis-py's blocking client: what a call costs before the library does anything."""

import msgpack
import redis
from common import PATH, drive
from with_jq import jq, prepare

from jqmaster.engine.scripts import builtin

client = redis.Redis.from_url(f"unix://{PATH}")
library = builtin().library
assert library is not None
SPEC = msgpack.packb({"name": "noop"})


def enqueue(at: int, text: str) -> None:
    argument = msgpack.packb({"at": at, "text": text})
    client.execute_command("FCALL", f"{library.name}_enqueue", 2, jq.namespace, f"{jq.namespace}:meta", SPEC, argument)


drive(enqueue, prepare=prepare)
