"""Keys of a namespace as plain values, to be kept, compared and put back."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis

# What a loader and tests put beside the data.
APART = (b"manifest", b"scripts", b"clock")


async def read_keys(client: Redis, namespace: str) -> list[list[Any]]:
    """[suffix, type, ttl in ms or 0, content] of each key, in order of suffix; the manifest is left out."""
    prefix = f"{namespace}:".encode()
    found = sorted([key async for key in client.scan_iter(match=prefix + b"*", count=1000)])
    keys = [key for key in found if key[len(prefix) :] not in APART]
    async with client.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.type(key)
            pipe.pttl(key)
        facts = await pipe.execute()
        kinds = [kind.decode() for kind in facts[::2]]
        for key, kind in zip(keys, kinds, strict=True):
            READ[kind](pipe, key)
        contents = await pipe.execute()
    return [
        [key[len(prefix) :], kind, max(ttl_ms, 0), _plain(kind, content)]
        for key, kind, ttl_ms, content in zip(keys, kinds, facts[1::2], contents, strict=True)
    ]


READ = {
    "string": lambda pipe, key: pipe.get(key),
    "hash": lambda pipe, key: pipe.hgetall(key),
    "list": lambda pipe, key: pipe.lrange(key, 0, -1),
    "set": lambda pipe, key: pipe.smembers(key),
    "zset": lambda pipe, key: pipe.zrange(key, 0, -1, withscores=True),
    "stream": lambda pipe, key: pipe.xrange(key),
}


def _plain(kind: str, content: Any) -> Any:
    if kind == "hash":
        return sorted([field, value] for field, value in content.items())
    if kind == "set":
        return sorted(content)
    if kind == "zset":
        return [[member, score] for member, score in content]
    if kind == "stream":
        return [[id_, sorted(map(list, fields.items()))] for id_, fields in content]
    return content
