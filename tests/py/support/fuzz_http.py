"""The fuzzer's other half: requests to a master, which is a process of its own."""

from __future__ import annotations

import http.client
import json
import re
import time
from typing import Any
from urllib.parse import quote

import msgpack

from fuzz_scripts import LUA, Fault, Report
from fuzz_values import Values, opened, packed
from http_support import document
from jqmaster.bundle.build import builtin
from jqmaster.manifest.contract import ANYBODY, SERVER, Argument, Operation, Route
from jqmaster.manifest.manifest import operations
from jqmaster.server.http.calls import in_query
from jqmaster.server.http.routes import OWN
from processes import MasterProcess
from servers import RedisServer

NAMESPACE = "{fuzz}"
CALLS = [one for one in operations().values() if one.roles != (SERVER,)]
REQUESTS = [
    *((one, route) for one in (*CALLS, *(own.operation for own in OWN)) for route in one.routes),
    *((one, Route(method="POST", path=f"/call/{one.name}")) for one in CALLS),
]
CODES = set(document()["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"])
KINDS = ("application/x-msgpack", "text/plain", "", "application/json; x=1")
ROUND = 500
LONGEST_S = 5.0
WAIT_S = 1.5  # for an answer that waits for something
_LINES = re.compile(r" (ERROR|CRITICAL) |Traceback|attempt to |user_(script|function)")


class HttpFuzzer:
    """Requests of every operation, right and wrong ones, JSON and MessagePack."""

    def __init__(self, server: RedisServer, master: MasterProcess, seed: object) -> None:
        self.redis = server.client()
        self.master = master
        self.seed = seed
        self.report = Report()
        self.connect()
        # Once a round has made a key, the master asks for keys.
        body = json.dumps({"name": "fuzz", "roles": ["admin"]})
        self.connection.request("POST", "/keys", body, {"content-type": "application/json"})
        self.key: str = json.loads(self.connection.getresponse().read())["key"]

    def connect(self) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.master.port, timeout=WAIT_S)

    def round(self, number: int, inputs: int = ROUND) -> None:
        """Raises Fault."""
        self.values = Values(f"{self.seed} http {number}")
        self.random, self.chance = self.values.random, self.values.chance
        for _ in range(inputs):
            self.request(*self.random.choice(REQUESTS))
            self.report.inputs += 1
        if self.master.has_ended or _LINES.search(self.master.text):
            raise Fault(f"round {number}: the master says {self.master.text[-3000:]}")

    # -- inputs -----------------------------------------------------------------------------------

    def part(self, argument: Argument) -> Any:
        if argument.name == "timeout":
            return self.random.choice((0, 0, 0.01, -1, "x"))
        return self.values.odd() if self.chance(0.05) else self.values.of_argument(argument)

    def text(self, value: Any) -> str:
        """As it stands in an address."""
        return quote(value if isinstance(value, str) else json.dumps(value, default=repr), safe="")[:3000]

    def body_of(self, operation: Operation, route: Route) -> Any:
        job_id, token = self.values.job()
        job = self.values.of_job() | {"argument": self.values.odd()}
        if route.path.startswith("/call/"):
            spec = {one.name: self.part(one) for one in operation.arguments if not one.optional or self.chance(0.3)}
            behind = [packed(spec.pop(name)) for name in operation.behind if name in spec]
            return [packed(spec), *behind] if "spec" in operation.positions else behind
        if operation.name == "enqueue_one":
            return job
        if operation.name == "enqueue":
            return {"jobs": [job] * self.random.randint(0, 3)}
        if operation.name == "finish":
            return {"outcomes": [{"id": job_id, "token": token, "type": "success", "result": self.values.odd()}]}
        if operation.name == "change":
            return {"jobs": [{"id": job_id, "priority": 1}]}
        body = {one.name: self.part(one) for one in operation.stand(route)[1] if not one.optional or self.chance(0.3)}
        return {"job": self.values.of_job(), "every": 60} | body if operation.name == "schedule" else body

    def request(self, operation: Operation, route: Route) -> None:
        path = route.path
        if route.place:
            named = self.part(operation.named[route.place])
            path = path.replace("{" + route.place + "}", self.text(named) or "x")
        queried, body_arguments = operation.stand(route)
        stands = [(name, one, one.optional or outer) for name, one, outer in in_query(queried)]
        query = [(name, self.part(one)) for name, one, is_optional in stands if not is_optional or self.chance(0.4)]
        query += [(self.random.choice(("x", "cursor", "", "count")), self.values.odd())] if self.chance(0.05) else []
        if query:
            path += "?" + "&".join(f"{name}={self.text(value)}" for name, value in query)
        has_worker = any(one.header == "worker-id" for one in operation.arguments)
        headers = {"worker-id": self.random.choice(self.values.workers)} if has_worker else {}
        headers["accept"] = self.random.choice(("application/json", "application/msgpack", "*/*"))
        if self.chance(0.03):
            headers["accept"] = self.random.choice(("text/html", ";;"))
        if self.chance(0.97):
            headers["authorization"] = f"Bearer {self.key}"
        body = None
        if body_arguments or route.path.startswith("/call/") or self.chance(0.02):
            body = self.encoded(operation, route, headers)
        method = route.method if self.chance(0.98) else self.random.choice(("GET", "PUT", "HEAD", "TRACE"))
        self.ask(operation, route, method, path, body, headers)

    def encoded(self, operation: Operation, route: Route, headers: dict[str, str]) -> bytes:
        value = self.body_of(operation, route)
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            value = self.values.changed(value)
        headers["content-type"], body = "application/msgpack", packed(value)
        if isinstance(value, bytes):
            headers["content-type"], body = "application/octet-stream", value
        elif self.chance(0.5):
            headers["content-type"] = "application/json"
            body = json.dumps(value, default=repr).encode("utf-8", "surrogatepass")
        if self.chance(0.03):
            headers["content-type"] = self.random.choice(KINDS)
        return self.values.broken(body) if self.chance(0.1) else body

    # -- what must hold ---------------------------------------------------------------------------

    def ask(
        self, operation: Operation, route: Route, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> None:
        asked = f"{method} {path[:1500]} {headers} {body[:1500] if body else body!r}"
        began = time.monotonic()
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            is_stream = operation.replies[0].type == "events" and response.status == 200
            content = b"" if is_stream else response.read()
        except (TimeoutError, http.client.HTTPException, OSError) as problem:
            self.connection.close()
            self.connect()
            if self.master.has_ended:
                raise Fault(f"the master has ended, by {asked}: {self.master.text[-2000:]}") from problem
            self.report.by["waits or cut"] += 1
            return
        took_s = time.monotonic() - began
        if is_stream:
            self.connection.close()
        self.report.longest_ms = max(self.report.longest_ms, took_s * 1000)
        self.report.by[str(response.status)] += 1
        if took_s > LONGEST_S:
            raise Fault(f"took {took_s:.1f} s: {asked}")
        is_of_query = response.status == 400 and b"unknown parameter" in content  # documented for all at once
        if method == route.method and str(response.status) not in responses_of(operation, route) and not is_of_query:
            raise Fault(f"{response.status} is documented nowhere, {content[:500]!r}, to {asked}")
        kind = response.getheader("content-type") or ""
        if response.status >= 400:
            self.report.refused += 1
            self.refused(asked, method, response.status, kind, content)
        elif method == route.method:
            self.learn(operation, json.loads(content) if "json" in kind else opened(content))

    def refused(self, asked: str, method: str, status: int, kind: str, content: bytes) -> None:
        said = content.decode("utf-8", "replace")
        if status in (500, 503) or status > 504 or LUA.search(said) or len(content) > 5000:
            raise Fault(f"{status} {said[:1000]!r} to {asked}\n{self.master.text[-2000:]}")
        if method != "HEAD":
            try:
                error = (json.loads(content) if "json" in kind else msgpack.unpackb(content))["error"]
                is_known = error["code"] in CODES and isinstance(error["message"], str)
            except (ValueError, LookupError, TypeError, msgpack.UnpackException):
                is_known = status in (403, 404, 405) and kind.startswith("text/")
            if not is_known:
                raise Fault(f"an error of an unknown form, {status} {kind} {said[:500]!r}, to {asked}")

    def learn(self, operation: Operation, found: Any) -> None:
        if not isinstance(found, dict):
            return
        for job_id in [found.get("job_id"), *(found.get("job_ids") or [])]:
            if isinstance(job_id, str):
                self.values.knows_job(job_id)
        for job in found.get("jobs") or [] if operation.name == "pick" else []:
            self.values.knows_job(job["id"], job["token"])
        if operation.name == "register" and "worker_id" in found:
            self.values.workers = [*self.values.workers[-5:], found["worker_id"]]

    def close(self) -> None:
        """It stops as it should, and the namespace it leaves is sound."""
        self.connection.close()
        self.master.signal()
        if (code := self.master.ends()) or _LINES.search(self.master.text):
            raise Fault(f"the master ended with {code}: {self.master.text[-3000:]}")
        script, cursor = self.redis.script_load(builtin()["audit"].source), b""
        while True:
            asked = packed({"cursor": cursor.decode()})
            cursor, *problems = self.redis.evalsha(script, 2, NAMESPACE, NAMESPACE + ":meta", asked)
            if problems:
                raise Fault(f"audit: {problems[:5]}")
            if not cursor:
                break
        self.redis.close()


def responses_of(operation: Operation, route: Route) -> set[str]:
    of_any = {"404", "405"}
    if operation.roles != (ANYBODY,):  # what the document's text says of all of them
        of_any |= {"401", "403", "429"}
    path = "/call/{operation}" if route.path.startswith("/call/") else route.path
    return set(document()["paths"][path][route.method.lower()]["responses"]) | of_any


def fuzzed_master(server: RedisServer) -> MasterProcess:
    """A master to be asked, on a server of its own."""
    return MasterProcess("--redis", server.url, "--namespace", NAMESPACE)
