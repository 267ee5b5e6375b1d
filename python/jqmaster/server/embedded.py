"""An own Redis for a server that was given no URL: started, found again, and stopped cleanly.

The process that uses it holds a lock on its data directory, which the kernel drops when that is killed: the Redis goes
on, and whoever starts next finds it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.retry import Retry

SOCKET_PATH_BYTES = 103  # sockaddr_un holds 104 bytes on macOS, one of them for the closing zero
INSTALL_HINT = "Install Redis 7.0 or newer (apt, dnf or brew install redis), or name a running one with --redis URL."
START_TIMEOUT_S = 30.0
TIMEOUT_S = 5.0
# Small sorted sets are lists searched from end to end; beyond 32 entries a skip list is cheaper.
OPTIONS = (
    "--port 0 --unixsocket redis.sock --unixsocketperm 700 --appendonly yes --logfile redis.log "
    "--maxmemory-policy noeviction --zset-max-ziplist-entries 32"
)


class StartError(RuntimeError):
    """A server, or its own Redis, cannot start; the message says why and what to do. `code`: the process's, as
    docs/cli.md has them: by default, that Redis cannot be used."""

    def __init__(self, message: str, code: int = 4) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def embedded_redis(data_dir: str | os.PathLike[str], *, max_memory: int | None = None) -> Iterator[str]:
    """The URL of a redis-server on a unix socket, with its data under `data_dir` (append-only, no eviction), for one
    process; stopped at the end. It may be one that runs there already. One that is started takes at most `max_memory`
    bytes for its data; default half of the machine's. Raises StartError."""
    folder = Path(data_dir).absolute()
    path = folder / "redis.sock"
    url = f"unix://{quote(str(path))}"
    with contextlib.ExitStack() as stack:
        try:
            if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
                raise OSError(errno.ENAMETOOLONG, "its name is too long for a unix socket")
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_mode & stat.S_ISVTX:
                raise PermissionError(errno.EPERM, "it is shared with others")
            folder.chmod(0o700)  # what is in jobs is private
            fcntl.flock(stack.enter_context((folder / "lock").open("w")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            is_taken = isinstance(error, BlockingIOError)
            why = f"another process has its Redis there, {url}" if is_taken else error.strerror
            raise StartError(f"cannot use {folder} for data: {why}; choose another --data-dir") from None
        client = stack.enter_context(
            Redis(unix_socket_path=str(path), socket_timeout=TIMEOUT_S, retry=Retry(NoBackoff(), 0))
        )
        process = _running(client, folder, max_memory)
        try:
            yield url
        finally:
            with contextlib.suppress(RedisError, subprocess.TimeoutExpired):
                client.shutdown()
                if process is not None:
                    process.wait(TIMEOUT_S)


async def gone(url: str) -> None:
    """Returns when no Redis listens at this `unix://` URL any more."""
    with contextlib.suppress(OSError):
        while True:
            reader, writer = await asyncio.open_unix_connection(unquote(url.removeprefix("unix://")))
            await reader.read()
            writer.close()
            await asyncio.sleep(1)  # it may have too many clients


def _running(client: Redis, folder: Path, max_memory: int | None) -> subprocess.Popen[bytes] | None:
    """Start it where it does not run, and wait until it answers; while it loads its data however long it takes."""
    deadline = time.monotonic() + START_TIMEOUT_S
    process = None
    while True:
        try:
            client.ping()
            return process
        except BusyLoadingError:
            deadline = time.monotonic() + START_TIMEOUT_S
        except RedisError as error:
            # One that is there and does not answer must not get another beside it, with the same data.
            if process is None and isinstance(error, redis.ConnectionError):
                process = _launch(folder, max_memory)
            elif time.monotonic() > deadline or (process and process.poll() is not None):
                if process:
                    process.kill()
                log = folder / "redis.log"
                why = " | ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else "no log"
                raise StartError(f"redis-server does not answer ({error}): {why}") from error
        time.sleep(0.02)


def _launch(folder: Path, max_memory: int | None) -> subprocess.Popen[bytes]:
    program = shutil.which("redis-server") or shutil.which("valkey-server")
    if program is None:
        raise StartError(f"no Redis URL was given and no redis-server is on PATH. {INSTALL_HINT}")
    half = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    memory = str(half if max_memory is None else max_memory)
    # A session of its own: Ctrl-C at the terminal must reach the server alone, which stops Redis last.
    return subprocess.Popen(
        [program, *OPTIONS.split(), "--save", "", "--maxmemory", memory], stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd=folder, umask=0o077,
    )  # fmt: skip
