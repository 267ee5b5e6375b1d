"""An own Redis for a master that was given no URL: started, found again, and stopped cleanly.

Any number of processes may share one data directory. Each holds a shared lock on ``users.lock`` for as
long as it uses the server; the one that finds itself alone when it stops takes the server down. The
kernel drops the locks of a process that is killed, so nothing has to be tidied up by hand.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError
from redis.retry import Retry

SERVER_NAMES = ("redis-server", "valkey-server")
OLDEST = (7, 0)
# sockaddr_un holds 108 bytes on Linux and 104 on macOS, one of them for the closing zero.
SOCKET_PATH_BYTES = 103
INSTALL_HINT = (
    "Install Redis 7.0 or newer (Debian, Ubuntu: apt install redis-server; Fedora: dnf install redis; "
    "macOS: brew install redis), or name a running one with --redis URL."
)
START_TIMEOUT_S = 30.0
LOAD_TIMEOUT_S = 600.0
PROBE_S = 0.02


class EmbeddedRedisError(RuntimeError):
    """The embedded Redis cannot be had; the message says why and what to do."""


def find_server() -> str:
    """Path of a redis-server 7.0 or newer on PATH. Raises `EmbeddedRedisError` when there is none."""
    for name in SERVER_NAMES:
        path = shutil.which(name)
        if path is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
        match = re.search(r"v=(\d+)\.(\d+)", said)
        if match is None or (int(match[1]), int(match[2])) < OLDEST:
            raise EmbeddedRedisError(f"{path} is too old: {said.strip() or 'no version'}. {INSTALL_HINT}")
        return path
    raise EmbeddedRedisError(f"no Redis URL was given and no redis-server is on PATH. {INSTALL_HINT}")


def socket_path(data_dir: Path) -> Path:
    """Where the server of `data_dir` listens: beside its data, or in a short private directory of its own
    when that path would be too long for a unix socket."""
    near = data_dir / "redis.sock"
    if len(os.fsencode(near)) <= SOCKET_PATH_BYTES:
        return near
    name = f"jq-{os.getuid()}-{hashlib.blake2s(os.fsencode(data_dir), digest_size=8).hexdigest()}"
    bases = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]
    for base in bases:
        far = Path(base) / name / "redis.sock" if base and Path(base).is_dir() else None
        if far is None or len(os.fsencode(far)) > SOCKET_PATH_BYTES:
            continue
        far.parent.mkdir(mode=0o700, exist_ok=True)
        found = far.parent.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise EmbeddedRedisError(f"{far.parent} is not a private directory of this user; remove it")
        return far
    raise EmbeddedRedisError(f"no path short enough for a unix socket; choose a shorter --data-dir than {data_dir}")


def available_bytes() -> int:
    """How much memory processes that start now can have, also by the limits of a container."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError):
        if match := re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text()):
            found.append(int(match[1]) * 1024)
    for limit in ("memory.max", "memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):  # "max": none
            found.append(int((Path("/sys/fs/cgroup") / limit).read_text()))
    return min(found)


def _make_private(folder: Path) -> None:
    """What is in jobs is nobody else's business, also where all was made by an older version."""
    if folder.stat().st_mode & stat.S_ISVTX:
        raise EmbeddedRedisError(f"{folder} is shared with others; choose a directory of its own with --data-dir")
    folder.chmod(0o700)
    files = ("redis.log", "start.lock", "users.lock", "*.rdb", "appendonlydir/*")
    for path in (path for pattern in files for path in folder.glob(pattern)):
        path.chmod(0o600)
    if (folder / "appendonlydir").is_dir():
        (folder / "appendonlydir").chmod(0o700)


class EmbeddedRedis:
    """A redis-server on a unix socket, with its data under `data_dir` (append-only, no eviction).

    `start` uses the server that already runs there, if one does. `stop` leaves it running when another
    process still uses it. A server that is started takes no more than `max_memory` bytes for its data; without,
    half of what is available then.
    """

    def __init__(
        self, data_dir: str | os.PathLike[str], *, max_memory: int | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
    ) -> None:  # fmt: skip
        self.data_dir = Path(data_dir).absolute()
        self.started_here = False
        self._max_memory = max_memory
        self._start_timeout_s = start_timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._users_fd: int | None = None
        self._socket: Path | None = None

    @property
    def url(self) -> str:
        """The server's URL, known after `start`."""
        if self._socket is None:
            raise EmbeddedRedisError("not started")
        return f"unix://{self._socket}"

    @property
    def pid(self) -> int:
        """Process id of the server, as it says itself."""
        with self._client() as client:
            return int(client.info("server")["process_id"])

    def start(self) -> str:
        """Have a server that answers, and return its URL. Raises `EmbeddedRedisError`."""
        try:
            self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make_private(self.data_dir)
        except OSError as error:
            raise EmbeddedRedisError(f"cannot use {self.data_dir} for data: {error.strerror}") from error
        self._socket = socket_path(self.data_dir)
        lock_fd = self._lock_start(self._start_timeout_s)
        try:
            if not self._answers():
                self._launch()
            self._users_fd = os.open(self.data_dir / "users.lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._users_fd, fcntl.LOCK_SH)
        except BaseException:
            self._kill_own(5.0)
            raise
        finally:
            os.close(lock_fd)
        return self.url

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Stop the server if nobody else uses it, within about `timeout_s`; say whether it was stopped."""
        if self._users_fd is None:
            return False
        deadline = time.monotonic() + timeout_s
        users_fd, self._users_fd = self._users_fd, None
        try:
            lock_fd = self._lock_start(timeout_s)
        except EmbeddedRedisError:
            os.close(users_fd)
            return False
        try:
            try:
                fcntl.flock(users_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            self._shut_down(max(0.5, deadline - time.monotonic()))
            assert self._socket is not None
            if self._socket.parent != self.data_dir:
                with contextlib.suppress(OSError):
                    self._socket.parent.rmdir()
            return True
        finally:
            os.close(users_fd)
            os.close(lock_fd)

    def __enter__(self) -> EmbeddedRedis:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- parts ------------------------------------------------------------------------------------

    def _client(self, timeout_s: float = 5.0) -> Redis:
        return Redis.from_url(self.url, socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0))

    def _lock_start(self, timeout_s: float) -> int:
        """One process at a time starts or stops the server of a directory."""
        fd = os.open(self.data_dir / "start.lock", os.O_CREAT | os.O_RDWR, 0o600)
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return fd
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(fd)
                    raise EmbeddedRedisError(
                        f"another process has been starting or stopping Redis in {self.data_dir} "
                        f"for {timeout_s:.0f} seconds"
                    ) from None
                time.sleep(PROBE_S)

    def _answers(self) -> bool:
        """Whether a server already listens; waits while it loads its data. A stale socket file does not
        count."""
        assert self._socket is not None
        if not self._socket.exists():
            return False
        deadline = time.monotonic() + LOAD_TIMEOUT_S
        while True:
            try:
                with self._client() as client:
                    client.ping()
                return True
            except BusyLoadingError:
                if time.monotonic() > deadline:
                    raise EmbeddedRedisError(f"the Redis in {self.data_dir} is still loading its data") from None
                time.sleep(PROBE_S)
            except RedisTimeoutError as error:
                raise EmbeddedRedisError(f"something listens at {self._socket} and does not answer") from error
            except RedisConnectionError:
                return False

    def _launch(self) -> None:
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self.data_dir),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory": str(available_bytes() // 2 if self._max_memory is None else self._max_memory),
            "maxmemory-policy": "noeviction",
            # Small sorted sets are lists that are searched from end to end; beyond this many a skip list is
            # cheaper.
            "zset-max-listpack-entries": "32",
            "daemonize": "no",
            "logfile": str(self.data_dir / "redis.log"),
        }
        command = [find_server()]
        for name, value in options.items():
            command += [f"--{name}", value]
        # A session of its own: Ctrl-C at the terminal must reach the master alone, which stops Redis last.
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd=self.data_dir, umask=0o077,
        )  # fmt: skip
        self.started_here = True
        self._await_ready(self._process)

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + self._start_timeout_s
        while True:
            if process.poll() is not None:
                raise EmbeddedRedisError(f"redis-server ended at once (exit {process.returncode}): {self._log_tail()}")
            try:
                with self._client() as client:
                    client.ping()
                return
            except BusyLoadingError:
                # Loading shows that it works; a big append-only file may take minutes.
                deadline = max(deadline, time.monotonic() + LOAD_TIMEOUT_S)
            except RedisError:
                pass
            if time.monotonic() > deadline:
                raise EmbeddedRedisError(f"redis-server does not answer at {self._socket}: {self._log_tail()}")
            time.sleep(PROBE_S)

    def _log_tail(self) -> str:
        try:
            lines = (self.data_dir / "redis.log").read_text(errors="replace").splitlines()
        except OSError:
            return f"no log in {self.data_dir}"
        return " | ".join(lines[-3:])

    def _shut_down(self, timeout_s: float) -> None:
        assert self._socket is not None
        deadline = time.monotonic() + timeout_s
        try:
            with self._client(timeout_s) as client:
                pid = int(client.info("server")["process_id"])
                with contextlib.suppress(RedisConnectionError):
                    client.execute_command("SHUTDOWN")  # answers by closing the connection
        except RedisError:
            self._kill_own(timeout_s)
            return
        if self._process is not None and self._process.pid == pid:
            self._kill_own(timeout_s, ask=False)
            return
        # Not our child, so nothing tells of its end; removing the socket is the last thing it does.
        while _alive(pid) and self._socket.exists():
            if time.monotonic() > deadline:
                os.kill(pid, signal.SIGTERM)
                return
            time.sleep(PROBE_S)

    def _kill_own(self, timeout_s: float, *, ask: bool = True) -> None:
        """End the child that this object started, first kindly and then by force."""
        process, self._process = self._process, None
        if process is None:
            return
        if ask and process.poll() is None:
            process.terminate()
        try:
            process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
