"""Commands and their replies, the short way: written to a connection of the pool, and read from it. redis-py's
`execute_command` takes twice the time, and may send a command again whose reply was lost."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis


async def exchange(redis: Redis, *command: Any) -> Any:
    """The reply to a command. Raises RedisError."""
    pool: Any = redis.connection_pool
    connection = await pool.get_connection()
    try:
        await connection.send_packed_command(connection.pack_command(*command))
        return await connection.read_response()
    finally:
        await pool.release(connection)
