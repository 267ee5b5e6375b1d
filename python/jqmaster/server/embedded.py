"""An own Redis for a server that was given no URL: started, found again, and stopped cleanly.

The process that uses it holds a lock on its data directory, which the kernel drops when that is killed: the Redis goes
on, and whoever starts next finds it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import IO

import redis
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.retry import Retry

SOCKET_PATH_BYTES = 103  # sockaddr_un holds 104 bytes on macOS, one of them for the closing zero
INSTALL_HINT = "Install Redis 7.0 or newer (apt, dnf or brew install redis), or name a running one with --redis URL."
START_TIMEOUT_S = 30.0


class EmbeddedRedisError(RuntimeError):
    """The embedded Redis cannot be had; the message says why and what to do."""


class EmbeddedRedis:
    """A redis-server on a unix socket, with its data under `data_dir` (append-only, no eviction), for one process.

    `start` uses the one that already runs there, if one does. One that is started takes at most `max_memory` bytes for
    its data; default half of the machine's.
    """

    def __init__(self, data_dir: str | os.PathLike[str], *, max_memory: int | None = None) -> None:
        self.data_dir = Path(data_dir).absolute()
        self.socket = self.data_dir / "redis.sock"
        self.url = f"unix://{self.socket}"
        self._max_memory = max_memory
        self._lock: IO[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Have a Redis that answers, and return its URL. Raises `EmbeddedRedisError`."""
        if len(os.fsencode(self.socket)) > SOCKET_PATH_BYTES:
            raise EmbeddedRedisError(f"{self.socket} is too long for a unix socket; choose a shorter --data-dir")
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.data_dir.stat().st_mode & stat.S_ISVTX:
                raise EmbeddedRedisError(f"{self.data_dir} is shared with others; choose another --data-dir")
            self.data_dir.chmod(0o700)  # what is in jobs is private
            lock = (self.data_dir / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            why = f"another process has its Redis in {self.data_dir}"
            raise EmbeddedRedisError(f"{why}; choose another --data-dir, or --redis {self.url}") from None
        except OSError as error:
            raise EmbeddedRedisError(f"cannot use {self.data_dir} for data: {error.strerror}") from error
        self._lock = lock
        self._wait()
        return self.url

    def stop(self, timeout_s: float = 10.0) -> None:
        """Stop the Redis, within about `timeout_s`."""
        lock, self._lock = self._lock, None
        if lock is None:
            return
        with lock, contextlib.suppress(RedisError, subprocess.TimeoutExpired):
            with contextlib.suppress(redis.ConnectionError), self._client(timeout_s) as client:
                client.shutdown()  # it ends by closing the connection
            if self._process is not None:
                self._process.wait(timeout_s)

    def __enter__(self) -> EmbeddedRedis:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _client(self, timeout_s: float = 5.0) -> Redis:
        return Redis(unix_socket_path=str(self.socket), socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0))

    def _wait(self) -> None:
        """Start it where it does not run, and wait until it answers; while it loads its data however long it takes."""
        deadline = time.monotonic() + START_TIMEOUT_S
        self._process = None
        while True:
            try:
                with self._client() as client:
                    client.ping()
                return
            except BusyLoadingError:
                deadline = time.monotonic() + START_TIMEOUT_S
            except RedisError as error:
                # One that is there and does not answer must not get another beside it, with the same data.
                if self._process is None and isinstance(error, redis.ConnectionError):
                    self._process = self._launch()
                elif time.monotonic() > deadline or (self._process and self._process.poll() is not None):
                    if self._process:
                        self._process.kill()
                    log = self.data_dir / "redis.log"
                    why = " | ".join(log.read_text(errors="replace").splitlines()[-3:]) if log.exists() else "no log"
                    raise EmbeddedRedisError(f"redis-server does not answer ({error}): {why}") from error
            time.sleep(0.02)

    def _launch(self) -> subprocess.Popen[bytes]:
        program = shutil.which("redis-server") or shutil.which("valkey-server")
        if program is None:
            raise EmbeddedRedisError(f"no Redis URL was given and no redis-server is on PATH. {INSTALL_HINT}")
        most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
        most = most if self._max_memory is None else self._max_memory
        # Small sorted sets are lists searched from end to end; beyond 32 entries a skip list is cheaper.
        options = (
            f"--port 0 --unixsocket redis.sock --unixsocketperm 700 --appendonly yes --maxmemory {most} "
            "--logfile redis.log --maxmemory-policy noeviction --zset-max-ziplist-entries 32"
        )
        # A session of its own: Ctrl-C at the terminal must reach the server alone, which stops Redis last.
        return subprocess.Popen(
            [program, *options.split(), "--save", ""], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, cwd=self.data_dir, umask=0o077,
        )  # fmt: skip
