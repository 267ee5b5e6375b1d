"""Private Redis servers for tests: on a unix socket in a directory of their own, never on a port."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis

SERVER = os.environ.get("JQ_REDIS_SERVER", "redis-server")  # whose binary: Valkey's and other versions' serve as well

DROP = """
local cursor = "0"
repeat
  local found = redis.call("SCAN", cursor, "MATCH", ARGV[1], "COUNT", 1000)
  cursor = found[1]
  if #found[2] > 0 then redis.call("UNLINK", unpack(found[2])) end
until cursor == "0"
"""


class RedisServer:
    """A redis-server process. ``arguments`` go to its command line, such as ``"--appendonly", "yes"``."""

    def __init__(self, *arguments: str) -> None:
        # Not pytest's tmp_path: a socket's path may have little more than 100 characters.
        self.directory = Path(tempfile.mkdtemp(prefix="jq-"))
        self.socket = self.directory / "redis.sock"
        # A machine that stands still for some seconds is no fault of those who connect meanwhile.
        self.url = f"unix://{self.socket}?socket_connect_timeout=60&socket_timeout=30"
        self.arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> RedisServer:
        """Start, or start again on the same directory; returns when the server answers."""
        defaults = ["--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.directory)]
        defaults += ["--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"]
        with open(self.directory / "redis.log", "ab") as log:
            command = [SERVER, *defaults, *self.arguments]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return self
            except redis.exceptions.ConnectionError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    text = (self.directory / "redis.log").read_text()
                    raise RuntimeError(f"redis-server did not start:\n{text}") from None
                time.sleep(0.01)

    def client(self) -> redis.Redis:
        """A blocking client, for set-up and for looking at things."""
        return redis.Redis(unix_socket_path=str(self.socket))

    @functools.cached_property
    def shared(self) -> redis.Redis:
        """One such client for all, while the server is not started again."""
        return self.client()

    def drop(self, pattern: str) -> None:
        """Remove these keys."""
        self.shared.eval(DROP, 0, pattern)

    def kill(self) -> None:
        """As kill -9: nothing is flushed or said goodbye to."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def close(self) -> None:
        """Stop the server and remove its directory."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> RedisServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()
