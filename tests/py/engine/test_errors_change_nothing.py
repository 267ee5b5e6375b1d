"""After an error reply nothing has changed: every key of the data set is the same, byte for byte.

What the replies say stands in ``data/refusals.json``: by script and text the paths. `make records` writes it
anew.
"""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from redis.exceptions import OutOfMemoryError, ResponseError

from bad_finding import VALID as FINDING
from bad_inputs import CASES
from bad_values import DONE, HOLD, RUNNING, SCHEDULED, WAITING, WORKER, encode, shown
from driving.driver import NAMESPACE, Driver
from driving.random_jobs import Generator
from driving.wire import parse_error
from servers import RedisServer

CODES = ("INVALID", "NOTFOUND", "CONFLICT", "LOST", "FULL", "VERSION")
KEYS = [NAMESPACE, NAMESPACE + ":meta"]
# Each key's name, content and whether it has a time to live. A DUMP, but for hashes: Redis moves their fields
# about behind the scenes, also when they are only read.
DUMP = """
local function content(key)
  if redis.call("TYPE", key).ok ~= "hash" then
    return redis.call("DUMP", key)
  end
  local all, fields = redis.call("HGETALL", key), {}
  for i = 1, #all, 2 do
    fields[#fields + 1] = cmsgpack.pack(all[i], all[i + 1])
  end
  table.sort(fields)
  return table.concat(fields)
end
local found = {}
for i, key in ipairs(redis.call("KEYS", "*")) do
  found[i] = {key, content(key), redis.call("PTTL", key) < 0 and 0 or 1}
end
return found
"""


class Data:
    """A namespace with jobs in every state, workers, requests and settings, and what it looked like."""

    def __init__(self, driver):
        self.driver = driver
        driver.fresh()
        jobs = [[{"name": "a", "keep_result": True, "timeout": 4000000}, b"\xc0"]] * 3
        created = driver.call("enqueue", options={"request": "known"}, jobs=jobs)
        assert [id for id, _ in created] == [RUNNING, DONE, WAITING]
        assert driver.call("register", name="w", queues="a", url="http://worker/") == WORKER
        *_, (job, _) = driver.call("pick", worker=WORKER, queues="a", count=2)
        outcome = {"id": DONE, "token": job["token"], "type": "success"}
        driver.call("finish", worker="w", outcomes=[[outcome, b"\xc0"]])
        driver.call("queue", name="full", max_waiting=1)
        driver.call("enqueue", options=None, jobs=[[{"name": "full", "delay": 10**9}, b"\xc0"]])
        assert driver.call("get", ids=[SCHEDULED])
        driver.call("queue", name="room for one", max_waiting=1)
        self.constrain()
        self.fill()
        self.remember()

    def constrain(self):
        """Constraints, of which some hold jobs."""
        limited = encode({"name": "limited"})
        for spec in (
            {"id": "known", "concurrency": 1}, {"id": "keyed", "by": "argument.a", "concurrency": 1},
            {"id": "keyed twice", "by": ["name", "argument.a"], "rate": {"limit": 1, "period": 10**6}},
        ):  # fmt: skip
            self.driver.send("constrain", encode(spec), limited)
        jobs = [[{"name": "limited"}, encode({"a": "x"})]] * 5
        self.driver.call("enqueue", options=None, jobs=jobs)
        self.driver.call("pick", worker="w", queues="limited", count=5)

    def fill(self):
        """Whatever else happens in a namespace; replies are the model test's concern."""
        generator = Generator("errors", self.driver)
        for _ in range(400):
            script, fields, label = generator.next()
            reply = None
            if script == "enqueue":
                reply = self.driver.call(script, **fields)
            elif script in ("pick", "assign", "cancel", "watch", "tick", "register"):
                reply = self.driver.call(script, **self.driver.resolve(fields))
            if script == "enqueue" and isinstance(reply, list):
                self.driver.names |= {f"job:{label}.{i}": id for i, (id, _) in enumerate(reply)}

    def remember(self):
        self.before = self.dump()

    def dump(self):
        return {key: (content, has_ttl) for key, content, has_ttl in self.driver.redis.send("EVAL", DUMP, 0)}

    def check_unchanged(self):
        before, after = self.before, self.dump()
        self.before = after
        changed = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        assert not changed

    def refusal(self, script, keys, args):
        """The error reply to a call."""
        try:
            reply = self.driver.send(script, *args, keys=keys)
        except ResponseError as error:
            return parse_error(str(error))
        self.before = self.dump()
        raise AssertionError(f"accepted: {reply!r}"[:1000])


def check_words(refused):
    """It is an error of ours, in words, and no stumbling of Lua."""
    text = f"{refused.code} {refused.path} {refused.message}"
    assert refused.code in CODES, text
    assert not re.search(r"user_(script|function)|attempt to| script: ", text), text
    assert len(text) < 1000 and refused.message, text


@pytest.fixture(scope="module", params=["functions", "scripts"])
def data(request):
    with RedisServer() as server:
        driver = Driver(server.socket, request.param)
        yield Data(driver)
        driver.close()


SAID = Path(__file__).parents[1] / "data" / "refusals.json"
BY_SCRIPT = defaultdict(list)
for _case in CASES:
    BY_SCRIPT[_case.script].append(_case)


def general(refused):
    """Path and text without numbers of places, the value that was refused, and ids."""
    text = re.sub(r",? got .*| \(\d+ bytes\)", "", refused.message, flags=re.DOTALL)
    return re.sub(r"\[\d+\]", "[i]", refused.path or ""), re.sub(r"[0-9a-f]{14}", "ID", text)


def check_case(data, case):
    """The refusal, or AssertionError."""
    refused = data.refusal(case.script, KEYS, case.args)
    data.check_unchanged()
    check_words(refused)
    assert (refused.code, refused.path) == (case.code, case.path), refused
    assert case.says in refused.message
    value, got = shown(case.value), refused.message.rpartition(", got ")[2]
    assert value is None or got == refused.message or got == value, refused
    return refused


def what_is_said(data, script):
    """All texts by their paths, and what is wrong."""
    said, problems = defaultdict(set), []
    for case in BY_SCRIPT[script]:
        try:
            path, text = general(check_case(data, case))
        except AssertionError as problem:
            problems.append(f"{case.title}: {problem}"[:500])
        else:
            if "did you mean" not in text:  # that was looked at
                said[text].add(path)
    return {text: " ".join(sorted(said[text])) for text in sorted(said)}, problems


@pytest.mark.parametrize("script", sorted(BY_SCRIPT))
def test_bad_input_is_refused_by_name_and_changes_nothing(data, script):
    said, problems = what_is_said(data, script)
    assert not problems, "\n".join(problems[:10])
    assert said == json.loads(SAID.read_text()).get(script), "read what is said; then run this file as a program"


def test_every_script_has_cases():
    with RedisServer() as server:
        assert {case.script for case in CASES} == set(Driver(server.socket).scripts)


WRONG_KEYS = [
    [], [NAMESPACE], [NAMESPACE + ":meta"], [NAMESPACE, NAMESPACE], [NAMESPACE, NAMESPACE + ":queues"],
    [NAMESPACE + ":meta", NAMESPACE], [*KEYS, NAMESPACE + ":due"],
]  # fmt: skip
SCRIPTS = sorted({case.script for case in CASES})
VALID = (
    {
        "enqueue": [encode({"name": "a"}), b"\xc0"],
        "pick": [encode({"worker": "w", "queues": "*"})],
        "finish": [
            encode({"worker": "w"}),
            encode({"id": RUNNING, "token": HOLD, "type": "success"}),
            b"\xc0",
        ],
        "heartbeat": [encode({"worker": "w", "jobs": [[RUNNING, HOLD]]})],
        "release": [encode({"worker": "w", "jobs": [[RUNNING, HOLD]]})],
        "cancel": [encode({"ids": [WAITING]})],
        "result": [DONE],
        "get": [DONE],
        "watch": [WAITING],
        "queue": [encode({"name": "new"})],
        "register": [encode({"name": "w", "queues": "*"})],
        "unregister": [encode({"worker": WORKER})],
        "assign": [encode({"master": "m"})],
        "refuse": [encode({"worker": WORKER, "jobs": [[RUNNING, HOLD]], "why": "busy"})],
        "setup": [],
        "migrate": [],
        "import": [encode(["key", "seq", "string", 0, 0, ["1"]])],
        "constrain": [encode({"id": "new", "concurrency": 1}), encode({"name": "a"})],
        "unconstrain": [encode({"id": "known"})],
        "usage": [encode({"id": "known"})],
        "hold": [encode({"id": "known", "seconds": 1})],
        "explain": [WAITING],
        "schedule": [encode({"id": "new", "every": 1, "job": {"name": "a"}}), b"\xc0"],
        "unschedule": [encode({"id": "known"})],
        "worker": [encode({"worker": WORKER, "request": "quiet"})],
        "track": [encode({"ids": [WAITING]})],
        "change": [encode({"id": WAITING, "priority": 1}), b""],
        "depend": [encode({"id": WAITING, "remove": [DONE]})],
        "kick": [encode({"ids": [RUNNING]})],
        "history": [WAITING],
        "stats": [encode({"by": "hour"})],
    }
    | FINDING
    | {
        script: [encode({})]
        for script in ("tick", "queues", "workers", "constraints", "config", "audit", "schedules", "export")
    }
)


@pytest.mark.parametrize("keys", WRONG_KEYS, ids=str)
@pytest.mark.parametrize("script", SCRIPTS)
def test_wrong_keys(data, script, keys):
    refused = data.refusal(script, keys, VALID[script])
    data.check_unchanged()
    check_words(refused)
    assert refused.code == "INVALID" and refused.path in ("KEYS", "namespace")
    if refused.path == "KEYS":
        assert refused.message == "expected exactly two keys, <namespace> and <namespace>:meta"


@pytest.mark.parametrize("namespace", ["{other}", "jq", "{}", ""])
@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in ("setup", "import")])
def test_a_namespace_that_is_not_set_up(data, script, namespace):
    refused = data.refusal(script, [namespace, namespace + ":meta"], VALID[script])
    data.check_unchanged()
    assert refused.code == "VERSION"
    assert refused.message == f"namespace {namespace} is not set up: load the scripts, or run setup"


BAD_NAMESPACES = [
    "",
    "jq",
    "{}",
    "{a b}",
    "{a}b",
    "a{b}",
    "{a{b}",
    "{a}}",
    "{" + "x" * 65 + "}",
    "{é}",
    "{a\n}",
    "{a\x7f}",
]


@pytest.mark.parametrize("namespace", BAD_NAMESPACES)
def test_setup_refuses_a_bad_namespace(data, namespace):
    refused = data.refusal("setup", [namespace, namespace + ":meta"], [])
    data.check_unchanged()
    check_words(refused)
    assert refused.code == "INVALID" and refused.path == "namespace"


@pytest.mark.parametrize("meta", ["newer", "cut", "empty"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_data_of_another_schema(data, script, meta):
    """A namespace that newer scripts have set up: its meta begins with the number of the schema."""
    send = data.driver.redis.send
    kept = send("GET", KEYS[1])
    schema = int.from_bytes(kept[:2], "big")
    assert data.driver.call("setup") == schema
    send(
        "SET",
        KEYS[1],
        {"newer": (schema + 1).to_bytes(2, "big") + kept[2:], "cut": kept[:5], "empty": b""}[meta],
    )
    data.remember()
    try:
        refused = data.refusal(script, KEYS, VALID[script])
        data.check_unchanged()
    finally:
        send("SET", KEYS[1], kept)
        data.remember()
    check_words(refused)
    assert refused.code == ("CONFLICT" if script == "import" else "VERSION")  # it is set up, says import
    if refused.code == "VERSION":
        stored = schema + 1 if meta == "newer" else "unknown"
        known = f"these scripts know {schema}: use scripts of its version"
        assert refused.message == f"namespace {NAMESPACE} holds data of schema {stored}, {known}"


@pytest.mark.parametrize("script", ["enqueue", "register", "queue", "constrain"])
def test_out_of_memory_refuses_what_would_fill(data, script):
    send = data.driver.redis.send
    send("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(OutOfMemoryError):
            data.driver.send(script, *VALID[script])
    finally:
        send("CONFIG", "SET", "maxmemory", "0")
    data.check_unchanged()


def test_the_thousandth_constraint_is_the_last():
    with RedisServer() as server:
        driver = Driver(server.socket)
        data = Data(driver)
        there = sum(1 for _ in driver.pages("constraints"))
        plain = encode({"name": "b"})
        for number in range(there, 1000):
            driver.send("constrain", encode({"id": f"number {number}", "concurrency": 1}), plain)
        data.remember()
        refused = data.refusal("constrain", KEYS, VALID["constrain"])
        data.check_unchanged()
        check_words(refused)
        assert (refused.code, refused.path) == ("FULL", "id")
        driver.send("constrain", encode({"id": "known", "concurrency": 2}), plain)
        driver.close()


if __name__ == "__main__":
    with RedisServer() as server:
        data = Data(Driver(server.socket))
        said = {script: what_is_said(data, script)[0] for script in sorted(BY_SCRIPT)}
    SAID.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
