"""Checks a worker in any language by running it: see README.md, "Workers".

python tests/protocol/worker.py [--slots N] [--only WORD] [--without WORD] COMMAND [ARGUMENT ...]

COMMAND finds in its environment JQ_URL (redis://127.0.0.1:<port>), JQ_SOCKET (the path of a unix socket that leads to
the same Redis) and JQ_NAMESPACE. Needs `redis-server`, the packages redis and msgpack, and `jqmaster` to load the
scripts.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgpack
import redis
from run import Client

NAMESPACE = "{jq}"
QUEUE = "checks"
CHECKS: list[Callable[[Any], None]] = []


def check(function: Callable[[Any], None]) -> Callable[[Any], None]:
    """One of the things that are looked at. Raises AssertionError."""
    CHECKS.append(function)
    return function


class Proxy:
    """A unix socket and a port that lead to Redis; remembers what was sent, and cuts connections when told to."""

    def __init__(self, path: str, redis_path: str) -> None:
        self.redis_path, self.is_cutting = redis_path, False
        self.requests: list[tuple[float, bytes]] = []
        self.cuts = self.replies = 0
        tcp = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{tcp.getsockname()[1]}"
        for listener in (tcp, socket.create_server(path, family=socket.AF_UNIX)):
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def accept(self, listener: socket.socket) -> None:
        while True:
            client, server = listener.accept()[0], socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.redis_path)
            except OSError:  # Redis is away
                client.close()
                continue
            for source, target, is_request in ((client, server, True), (server, client, False)):
                threading.Thread(target=self.pump, args=(source, target, is_request), daemon=True).start()

    def pump(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_request:
                    self.requests.append((time.monotonic(), data))
                elif self.is_cutting and self.is_due():
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def is_due(self) -> bool:
        self.replies += 1
        self.cuts += self.replies % 5 == 0
        return self.replies % 5 == 0

    def times(self, part: bytes, since: float) -> int:
        """How many requests since then had this in them."""
        return sum(data.count(part) for moment, data in list(self.requests) if moment >= since)


class Setting:
    """A Redis, a proxy before it, and the worker that is checked."""

    def __init__(self, command: Sequence[str], slots: int, folder: Path) -> None:
        self.command, self.slots, self.folder = command, slots, folder
        self.redis_path, self.path = str(folder / "redis"), str(folder / "proxy")
        self.start_redis()
        url = f"unix://{self.redis_path}"
        subprocess.run(
            [sys.executable, "-m", "jqmaster", "load", "--redis", url, "--namespace", NAMESPACE],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.proxy = Proxy(self.path, self.redis_path)
        self.worker: subprocess.Popen[bytes] | None = None

    def start_redis(self) -> None:
        options = f"--port 0 --unixsocket {self.redis_path} --dir {self.folder} --appendonly yes --save"
        self.redis = subprocess.Popen(["redis-server", *options.split(), ""], stdout=subprocess.DEVNULL)
        until(self.is_up, "Redis starts", 10)
        self.client = Client(f"unix://{self.redis_path}", NAMESPACE)

    def is_up(self) -> bool:
        with (
            contextlib.suppress(redis.ConnectionError, redis.BusyLoadingError),
            redis.Redis(unix_socket_path=self.redis_path) as probe,
        ):
            return bool(probe.ping())
        return False

    def start_worker(self) -> None:
        environment = {"JQ_SOCKET": self.path, "JQ_URL": self.proxy.url, "JQ_NAMESPACE": NAMESPACE}
        self.worker = subprocess.Popen(self.command, env=os.environ | environment, start_new_session=True)
        assert self.state(self.ended(self.enqueue("echo", {"value": "here"}), 20)) == "done"

    def stop_worker(self) -> int:
        """End the worker by SIGTERM, while leases that nobody renews run out; its exit code."""
        worker = self.worker
        assert worker is not None
        worker.terminate()
        try:
            until(lambda: self.call("tick", b"\x80") and worker.poll() is not None, "the worker ends on SIGTERM", 30)
        except AssertionError:
            worker.kill()
            raise
        return worker.wait()

    def close(self) -> None:
        if self.worker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.worker.pid, signal.SIGKILL)  # also what it left behind
            self.worker.wait()
        self.redis.terminate()
        self.redis.wait()

    def call(self, operation: str, *arguments: str | bytes) -> Any:
        return self.client.call(NAMESPACE, operation, *arguments)

    def enqueue(self, name: str, argument: Any, **spec: Any) -> str:
        return self.enqueue_all([(name, argument)], **spec)[0]

    def enqueue_all(self, jobs: Sequence[tuple[str, Any]], **spec: Any) -> list[str]:
        parts = []
        for name, argument in jobs:
            usual = {"name": name, "queue": QUEUE, "max_retry": 3, "retry_base": 0, "keep_result": True}
            parts += [msgpack.packb(usual | spec), msgpack.packb(argument)]
        return [part.decode() for part in self.call("enqueue", *parts)[::2]]

    def get(self, job: str) -> dict[str, Any]:
        document: dict[str, Any] = msgpack.unpackb(self.call("get", job)[0], strict_map_key=False)
        return document

    def state(self, job: str) -> str:
        return str(self.get(job)["status"])

    def running(self, job: str, seconds: float = 2) -> str:
        until(lambda: self.state(job) == "running", f"the job runs (it is {self.state(job)})", seconds)
        return job

    def ended(self, job: str, seconds: float = 2) -> str:
        until(lambda: self.state(job) in ("done", "error", "cancelled"), "the job ends", seconds)
        return job

    def is_done_at(self, job: str, attempt: int, seconds: float = 5) -> None:
        document = self.get(self.ended(job, seconds))
        assert document["status"] == "done", f"it is {document['status']}: {document.get('message')}"
        assert document["attempt"] == attempt, f"done at attempt {document['attempt']}, not {attempt}"

    def asleep(self) -> None:
        """Let the worker find nothing and fall asleep."""
        time.sleep(1)

    def works(self, seconds: float = 2) -> None:
        """A job that comes now is done soon."""
        self.is_done_at(self.enqueue("echo", {"value": "still here"}), 1, seconds)


def until(holds: Callable[[], bool], what: str, seconds: float) -> None:
    """Wait for something, no longer than this."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(0.01)


# -- The checks ------------------------------------------------------------------------------------------------------


@check
def values_come_back_as_they_were_sent(setting: Setting) -> None:
    value = [0, -1, 2**53, 1.5, "", "é漢😀", "it's \\ \"\n", True, {"a": {"b": [1]}}, "x" * 70_000]
    job = setting.ended(setting.enqueue("echo", {"value": value}))
    state, blob = setting.call("result", job)
    assert (state, msgpack.unpackb(blob)) == (b"done", value), f"{state}, {blob[:200]!r}"


@check
def jobs_of_one_moment_start_at_once(setting: Setting) -> None:
    setting.asleep()
    many = min(setting.slots, 3)
    naps = [setting.enqueue("nap", {"seconds": 4}) for _ in range(many)]
    for job in naps:
        setting.running(job)
    for job in naps:
        setting.is_done_at(job, 1, 10)


@check
def after_a_pick_of_less_than_there_is_room_for_it_goes_on_picking(setting: Setting) -> None:
    if setting.slots == 1:
        return
    setting.asleep()
    first = setting.running(setting.enqueue("nap", {"seconds": 4}))
    time.sleep(0.5)
    setting.works()
    setting.is_done_at(first, 1, 10)


@check
def a_delayed_job_starts_when_it_is_due(setting: Setting) -> None:
    setting.asleep()
    setting.is_done_at(setting.enqueue("echo", {"value": 1}, delay=1.5), 1, 4)


@check
def an_idle_worker_sleeps(setting: Setting) -> None:
    setting.asleep()
    since = time.monotonic()
    time.sleep(4)
    calls = sum(setting.proxy.times(word, since) for word in (b"FCALL", b"EVALSHA", b"fcall", b"evalsha"))
    assert calls <= 6, f"{calls} calls in 4 s without a job"


@check
def a_wave_of_jobs_is_done_once(setting: Setting) -> None:
    jobs = setting.enqueue_all([("echo", {"value": number}) for number in range(300 if setting.slots > 1 else 60)])
    for job in jobs:
        setting.is_done_at(job, 1, 120)


@check
def lost_replies_start_nothing_twice(setting: Setting) -> None:
    enough, jobs = setting.proxy.cuts + 8, []
    setting.proxy.is_cutting = True
    try:
        while setting.proxy.cuts < enough:
            batch = setting.enqueue_all([("echo", {"value": number}) for number in range(20)])
            for job in batch:
                setting.ended(job, 60)
            jobs += batch
    finally:
        setting.proxy.is_cutting = False
    for job in jobs:
        setting.is_done_at(job, 1)


@check
def lost_scripts_are_loaded_again(setting: Setting) -> None:
    setting.asleep()
    setting.client.command("FUNCTION", "FLUSH")
    setting.client.command("SCRIPT", "FLUSH")
    setting.works(5)


@check
def a_restart_of_redis_is_survived(setting: Setting) -> None:
    setting.asleep()
    setting.client.close()
    setting.redis.terminate()
    setting.redis.wait()
    time.sleep(1)
    setting.start_redis()
    setting.works(10)


@check
def a_long_job_keeps_its_lease(setting: Setting) -> None:
    setting.is_done_at(setting.enqueue("nap", {"seconds": 4}, timeout=1), 1, 10)


@check
def a_cancelled_job_frees_its_slot(setting: Setting) -> None:
    naps = [setting.running(setting.enqueue("nap", {"seconds": 60}, timeout=3)) for _ in range(setting.slots)]
    setting.call("cancel", msgpack.packb({"ids": naps}))
    setting.works(5)


@check
def a_job_that_is_taken_away_is_let_go(setting: Setting) -> None:
    nap = setting.running(setting.enqueue("nap", {"seconds": 3}, timeout=3))
    setting.call("kick", msgpack.packb({"ids": [nap]}))
    setting.is_done_at(nap, 2, 15)


@check
def what_a_stopped_process_lost_is_not_reported_again_and_again(setting: Setting) -> None:
    assert setting.worker is not None
    nap = setting.running(setting.enqueue("nap", {"seconds": 2}, timeout=1, max_retry=0))
    setting.worker.send_signal(signal.SIGSTOP)
    try:
        until(lambda: setting.call("tick", b"\x80") and setting.state(nap) == "error", "the lease ends", 15)
    finally:
        setting.worker.send_signal(signal.SIGCONT)
    time.sleep(3)
    since = time.monotonic()
    time.sleep(3)
    times = setting.proxy.times(nap.encode(), since)
    assert not times, f"{times} requests name a job that was lost 3 s ago"
    setting.works(5)


@check
def a_long_message_is_reported(setting: Setting) -> None:
    neighbour = setting.enqueue("echo", {"value": 1})
    job = setting.enqueue("fail", {"text": "é" * 40_000}, max_retry=0)
    document = setting.get(setting.ended(job, 5))
    assert document["status"] == "error" and document["message"].startswith("éé"), document["status"]
    setting.is_done_at(neighbour, 1)


@check
def a_message_that_is_no_text_is_reported(setting: Setting) -> None:
    neighbour = setting.enqueue("echo", {"value": 1})
    assert setting.state(setting.ended(setting.enqueue("garble", {}, max_retry=0), 5)) == "error"
    setting.is_done_at(neighbour, 1)


@check
def a_failure_is_tried_again(setting: Setting) -> None:
    document = setting.get(setting.ended(setting.enqueue("fail", {"text": "no"}, max_retry=1), 5))
    assert (document["status"], document["attempt"]) == ("error", 2), document


@check
def a_name_it_does_not_know_stops_nothing(setting: Setting) -> None:
    job = setting.enqueue("nobody.knows", {}, max_retry=0)
    setting.works()
    until(lambda: setting.state(job) != "running", "the job is failed or given back", 5)
    setting.call("cancel", msgpack.packb({"ids": [job]}))


@check
def sigterm_leaves_nothing_running(setting: Setting) -> None:
    jobs = [setting.enqueue("nap", {"seconds": 3}, timeout=1) for _ in range(min(setting.slots, 2))]
    naps = [setting.running(job) for job in jobs]
    code = setting.stop_worker()
    assert code == 0, f"exit code {code}"
    for job in naps:
        document = setting.get(job)
        assert document["status"] in ("done", "queued"), document["status"]
        assert (document["attempt"], document["retry_count"]) == (1, 0), "a lease ran out"
    waiting = setting.enqueue("echo", {"value": 1})
    time.sleep(0.5)
    assert setting.state(waiting) == "queued", "somebody works on"


def main() -> int:
    """Run the checks; how many failed."""
    parser = argparse.ArgumentParser(description="Checks a worker in any language by running it.")
    parser.add_argument("--slots", type=int, default=10, help="how many jobs it runs at once (10)")
    parser.add_argument("--only", default="", metavar="WORD", help="only checks with this in their names")
    parser.add_argument("--without", default=None, metavar="WORD", help="no checks with this in their names")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    chosen = [function for function in CHECKS if options.only in function.__name__]
    if options.without:
        chosen = [function for function in chosen if options.without not in function.__name__]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="jq-") as folder:
        setting = Setting(options.command, options.slots, Path(folder))
        try:
            for function in chosen:
                name = function.__name__.replace("_", " ")
                try:
                    if setting.worker is None or setting.worker.poll() is not None:
                        setting.start_worker()
                    function(setting)
                    print(f"ok      {name}", flush=True)
                except (AssertionError, redis.ResponseError) as problem:
                    failed += 1
                    print(f"FAILED  {name}: {problem}", flush=True)
        finally:
            setting.close()
    print(f"{len(chosen) - failed} of {len(chosen)} checks passed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
