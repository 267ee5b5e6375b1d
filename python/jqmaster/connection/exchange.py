"""Commands and their replies, the short way: written to a connection of the pool, and read from it. redis-py's
`execute_command` takes twice the time, and may send a command again whose reply was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ResponseError


async def exchange(redis: Redis, *command: Any) -> Any:
    """The reply to a command. Raises RedisError."""
    pool: Any = redis.connection_pool
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(connection.pack_command(*command))
        return await connection.read_response()
    finally:
        await pool.release(connection)


async def exchange_all(redis: Redis, commands: Sequence[Sequence[Any]], blocked_s: float = 0.0) -> list[Any]:
    """The replies to commands sent at once on one connection, of which one may block for so long; an error reply stands
    in its place. Raises RedisError when the connection fails."""
    pool: Any = redis.connection_pool
    connection: Any = await pool.get_connection()
    usual_s = getattr(connection, "reply_s", 0.0)
    connection.reply_s = usual_s + blocked_s
    replies: list[Any] = []
    is_whole = False
    try:
        await connection.send_packed_command(connection.pack_commands(commands))
        for _ in commands:
            try:
                replies.append(await connection.read_response())
            except ResponseError as refusal:
                replies.append(refusal)
        is_whole = True
    finally:
        connection.reply_s = usual_s
        if not is_whole:  # what is still to come must not be taken for another's
            await connection.disconnect(nowait=True)
        await pool.release(connection)
    return replies
