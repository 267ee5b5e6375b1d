"""A master's open files, as a real process."""

from __future__ import annotations

import os
import resource
import socket
import time
from contextlib import closing
from pathlib import Path

import pytest

from processes import MasterProcess

pytestmark = pytest.mark.faults

GET = b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


def limit_of(pid: int) -> int:
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Max open files")).split()[3])


def test_the_soft_limit_is_raised_at_start(redis_url: str, namespace: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
    try:
        with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
            assert limit_of(master.pid) == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_that_clients_have_closed_are_let_go(redis_url: str, namespace: str) -> None:
    with MasterProcess("--redis", redis_url, "--namespace", namespace) as master:
        before = open_files(master.pid)
        for _ in range(50):
            with closing(socket.create_connection(("127.0.0.1", master.port), timeout=60)) as connection:
                connection.sendall(GET)
                assert b" 200 " in connection.recv(65536)
        deadline = time.monotonic() + 40  # an idle connection is kept for 75 s
        while open_files(master.pid) > before + 10:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))
