"""Runs the conformance suite with nothing but a Redis client and a MessagePack library; see README.md.

python tests/protocol/run.py redis://127.0.0.1:6379 '{jq}' [topic ...]      JQ_FORM=scripts: by EVALSHA alone
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import msgpack
import redis

SUITE = Path(__file__).parent
ABSENT = object()


class Client:
    """A connection, and what the namespace's manifest names: functions, and shas of scripts."""

    def __init__(self, url: str, namespace: str) -> None:
        self.pool = redis.ConnectionPool.from_url(url, socket_timeout=10, protocol=2)
        self.connection = self.pool.get_connection()
        self.manifest = f"{namespace}:manifest"
        self.shas: dict[str, bytes] = {}
        self.library, functions = self.command("HMGET", self.manifest, "library", "functions")
        is_for_scripts = os.environ.get("JQ_FORM") == "scripts"
        self.functions = set() if is_for_scripts else set((functions or b"").decode().split())

    def command(self, *arguments: str | bytes | int) -> Any:
        """The reply as it came; an error reply raises ``redis.ResponseError``."""
        self.connection.send_command(*arguments)
        return self.connection.read_response(disable_decoding=True)

    def call(self, namespace: str, script: str, *arguments: str | bytes) -> Any:
        """Call an operation; load it from the manifest when Redis does not have it (any more)."""
        keys = (namespace, f"{namespace}:meta")
        if script in self.functions:
            function = self.library + b"_" + script.encode()
            try:
                return self.command("FCALL", function, 2, *keys, *arguments)
            except redis.ResponseError as problem:
                if not str(problem).startswith("Function not found"):
                    raise
            self.command("FUNCTION", "LOAD", "REPLACE", self.source(self.library))
            return self.command("FCALL", function, 2, *keys, *arguments)
        if script not in self.shas:
            sha = self.command("HGET", self.manifest, script)
            assert sha, f"no script {script!r} in {self.manifest}"
            self.shas[script] = sha
        sha = self.shas[script]
        try:
            return self.command("EVALSHA", sha, 2, *keys, *arguments)
        except redis.exceptions.NoScriptError:
            self.command("SCRIPT", "LOAD", self.source(sha))
            return self.command("EVALSHA", sha, 2, *keys, *arguments)

    def source(self, name: bytes) -> bytes:
        """What a script or library is loaded from."""
        return gzip.decompress(self.command("HGET", self.command("HGET", self.manifest, "sources"), name))

    def close(self) -> None:
        """Close all connections."""
        self.pool.disconnect()


class Case:
    """One case, in a namespace of its own. ``run`` raises AssertionError at the first step gone wrong."""

    def __init__(self, client: Client, steps: list[dict[str, Any]], set_up: bool = True) -> None:
        self.client, self.steps, self.set_up = client, steps, set_up
        self.namespace = "{suite-" + secrets.token_hex(6) + "}"
        self.captured: dict[str, Any] = {}
        self.subscriber: Any = None

    def run(self) -> None:
        """Play all steps, and remove what the case left in Redis."""
        try:
            if self.set_up:
                self.client.call(self.namespace, "setup")
            for number, step in enumerate(self.steps):
                wrong = self.play(step)
                # "until": the same step again, until it is as expected.
                deadline = time.monotonic() + 5
                while wrong and step.get("until") and time.monotonic() < deadline:
                    time.sleep(0.01)
                    wrong = self.play(step)
                assert not wrong, f"step {number}: {wrong}\n  {json.dumps(step)}"
        finally:
            if self.subscriber:
                self.subscriber.disconnect()
            pattern = self.namespace + ":*"
            for key in self.client.command("SCAN", 0, "MATCH", pattern, "COUNT", 10**6)[1]:
                self.client.command("UNLINK", key)

    def play(self, step: dict[str, Any]) -> str | None:
        """What is wrong with the answer, None when it is as expected."""
        if "subscribe" in step:
            self.subscriber = self.client.pool.get_connection()
            self.subscriber.send_command("SSUBSCRIBE", self.full(step["subscribe"]))
            return None if self.subscriber.read_response()[0] == b"ssubscribe" else "not subscribed"
        if "message" in step:
            message, pattern = self.subscriber.read_response()[2], step["message"]
            return self.differs(pattern, message.split() if isinstance(pattern, list) else message)
        try:
            if "redis" in step:
                reply = self.client.command(*(self.full(part) for part in step["redis"]))
            else:
                arguments = [self.argument(argument) for argument in step["args"]]
                reply = self.client.call(self.namespace, step["call"], *arguments)
        except redis.ResponseError as error:
            expected = step.get("error", "no error")
            fits = str(error).startswith((expected + ":", expected + " "))
            return None if fits else f"expected {expected}, got the error {error}"
        if "error" in step:
            return f"expected the error {step['error']}, got {reply!r}"
        return self.differs(step.get("reply", "$any"), reply)

    def full(self, text: str) -> str:
        return text.replace("{tag}", self.namespace)

    def argument(self, argument: Any) -> str | bytes:
        if isinstance(argument, str):
            return str(self.filled(argument))
        if "hex" in argument:
            return bytes.fromhex(argument["hex"])
        packed: bytes = msgpack.packb(self.filled(argument["pack"]))
        return packed

    def filled(self, value: Any) -> Any:
        """A value with what was captured in the place of its names."""
        if isinstance(value, list):
            return [self.filled(item) for item in value]
        if isinstance(value, dict):
            return {self.filled(key): self.filled(item) for key, item in value.items()}
        return self.captured[value] if isinstance(value, str) and value.startswith("$") else value

    def differs(self, pattern: Any, value: Any, path: str = "reply") -> str | None:
        """Where the value does not fit the pattern."""
        if isinstance(pattern, dict) and "pack" in pattern and isinstance(value, bytes):
            return self.differs(pattern["pack"], msgpack.unpackb(value, strict_map_key=False), path)
        if isinstance(pattern, dict) and "hex" in pattern:
            pattern, value = pattern["hex"], value.hex() if isinstance(value, bytes) else value
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if isinstance(pattern, str) and pattern.startswith("$"):
            if self.fits(pattern, value):
                return None
            pattern = self.captured.get(pattern, pattern)
        if isinstance(pattern, dict) and "$between" in pattern:
            least, most = pattern["$between"]
            if self.fits("$number", value) and least <= value <= most:
                return None
        elif isinstance(pattern, list) and isinstance(value, list) and len(pattern) == len(value):
            parts = (self.differs(*pair, f"{path}[{i}]") for i, pair in enumerate(zip(pattern, value, strict=True)))
            return next(filter(None, parts), None)
        elif isinstance(pattern, dict) and (isinstance(value, dict) or value == []):
            found = value or {}
            fields = (self.differs(item, found.get(key, ABSENT), f"{path}.{key}") for key, item in pattern.items())
            return next(filter(None, fields), None)
        elif pattern == value and isinstance(pattern, bool) == isinstance(value, bool):
            return None
        elif pattern == [] and value == {}:
            return None  # Lua has one empty table
        return f"{path}: expected {pattern!r}, got {'nothing' if value is ABSENT else repr(value)}"

    def fits(self, name: str, value: Any) -> bool:
        """Whether a value fits one of the words, or is the first for a name, which is then noted."""
        if name == "$absent" or value is ABSENT:
            return name == "$absent" and value is ABSENT
        if name == "$any":
            return True
        if name in ("$number", "$integer"):
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            return is_number and (name == "$number" or value == int(value))
        if name == "$text":
            return isinstance(value, str)
        if name not in self.captured:
            self.captured[name] = value
            return True
        return False


def cases(*topics: str) -> list[tuple[str, dict[str, Any]]]:
    """All cases of these topics, or of all: [("topic: case", the case), ...]."""
    files = sorted(SUITE.glob("*.json"))
    suite = [json.loads(file.read_text()) for file in files if not topics or file.stem in topics]
    return [(f"{file['topic']}: {case['case']}", case) for file in suite for case in file["cases"]]


def main() -> int:
    """Run the suite; how many cases failed."""
    parser = argparse.ArgumentParser(description="Plays the conformance cases.")
    parser.add_argument("url", nargs="?", default="redis://127.0.0.1:6379")
    parser.add_argument("namespace", nargs="?", default="{jq}", help="into which the scripts were loaded: {jq}")
    parser.add_argument("topics", nargs="*", metavar="topic", help="such as enqueue; default: all")
    options = parser.parse_args()
    client = Client(options.url, options.namespace)
    failed = 0
    suite = cases(*options.topics)
    for name, case in suite:
        try:
            Case(client, case["steps"], case.get("setup", True)).run()
        except (AssertionError, redis.ResponseError) as error:
            failed += 1
            print(f"FAILED {name}\n  {error}")
    client.close()
    print(f"{len(suite) - failed} of {len(suite)} cases passed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(), 1))
