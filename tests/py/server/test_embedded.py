"""The Redis that a master starts for itself: found again, shared, stopped by the last, and safe from
accidents."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from jqmaster.server import embedded
from jqmaster.server.embedded import StartError, embedded_redis
from processes import MasterProcess


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, so that the socket fits beside the data."""
    path = Path(tempfile.mkdtemp(prefix="jq-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


def client(folder: Path) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(folder / "redis.sock"))


def pid_of(folder: Path) -> int:
    with client(folder) as asked:
        return int(asked.info("server")["process_id"])


def ends(pid: int, timeout_s: float = 10) -> bool:
    """Whether the process ends; one that waits for its parent has."""
    deadline = time.monotonic() + timeout_s
    with suppress(FileNotFoundError, ProcessLookupError):
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            if time.monotonic() > deadline:
                return False
            time.sleep(0.01)
    return True


def refused(folder: Path, why: str) -> None:
    with pytest.raises(StartError, match=why), embedded_redis(folder):
        pass


def test_it_is_set_up_as_jq_needs_it(folder: Path) -> None:
    data = folder / "a 50%41 #b?c"
    with embedded_redis(data) as url, redis.Redis.from_url(url) as connection:
        settings = connection.config_get("*")
        assert settings["appendonly"] == "yes" and settings["appendfsync"] == "everysec"
        assert settings["maxmemory-policy"] == "noeviction" and settings["port"] == "0"
        assert stat.S_IMODE((data / "redis.sock").stat().st_mode) == 0o700
        assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_it_is_for_one_process_which_stops_it(folder: Path) -> None:
    with embedded_redis(folder):
        pid = pid_of(folder)
        refused(folder, "another process has its Redis")
        assert pid_of(folder) == pid
    assert ends(pid)
    with embedded_redis(folder):
        assert pid_of(folder) != pid


def test_a_server_whose_master_was_killed_is_used_again(folder: Path) -> None:
    with MasterProcess("--data-dir", str(folder)) as master:
        pid = pid_of(folder)
        master.kill()
    with embedded_redis(folder):
        assert pid_of(folder) == pid
    assert ends(pid)


def test_a_master_ends_with_its_redis_to_be_started_again(folder: Path) -> None:
    with MasterProcess("--data-dir", str(folder)) as master:
        os.kill(pid_of(folder), signal.SIGKILL)
        assert master.ends() == 4
        assert f"its Redis has ended; see {folder}/redis.log" in master.text
    with MasterProcess("--data-dir", str(folder)):
        assert pid_of(folder)


def test_one_that_hangs_gets_no_other_beside_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MasterProcess("--data-dir", str(folder)) as master:
        pid = pid_of(folder)
        master.kill()
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(embedded, "START_TIMEOUT_S", 0)
    refused(folder, "does not answer")
    os.kill(pid, signal.SIGCONT)
    with embedded_redis(folder):
        assert pid_of(folder) == pid
    assert ends(pid)


def test_a_path_too_long_for_a_socket_is_refused(folder: Path) -> None:
    refused(folder / ("d" * 120), "too long for a unix socket")


def test_without_redis_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    refused(folder / "var", "apt, dnf or brew install redis")


def test_a_server_that_ends_at_once_says_why(folder: Path) -> None:
    (folder / "appendonlydir").write_text("in the way")
    refused(folder, "appendonlydir")
    (folder / "appendonlydir").unlink()
    with embedded_redis(folder):
        assert pid_of(folder)


@pytest.mark.parametrize("most", [0, 64 << 20])
def test_how_much_it_takes_can_be_said(folder: Path, most: int) -> None:
    with embedded_redis(folder, max_memory=most), client(folder) as asked:
        assert int(asked.config_get("maxmemory")["maxmemory"]) == most


def test_a_directory_of_all_is_left_alone(folder: Path) -> None:
    folder.chmod(0o1777)
    refused(folder, "shared")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o1777


def test_a_program_that_does_not_get_as_far_as_its_log_is_told_of(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "redis-server").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(folder))
    refused(folder / "var", "does not answer")
