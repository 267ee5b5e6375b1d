"""After an error reply nothing has changed: every key of the data set is the same, byte for byte."""

import re

import pytest
from redis.exceptions import OutOfMemoryError

from driving.driver import NAMESPACE, Driver
from jqmaster.manifest.manifest import operations
from refusal_data import KEYS, data  # noqa: F401
from refusal_table import BY_SCRIPT, CASES
from refusal_values import WAITING, encode, shown
from refusals import TARGETS
from servers import RedisServer

CODES = ("INVALID", "NOTFOUND", "CONFLICT", "LOST", "FULL", "VERSION")


def check_words(refused):
    """It is an error of ours, in words, and no stumbling of Lua."""
    text = f"{refused.code} {refused.path} {refused.message}"
    assert refused.code in CODES, text
    assert not re.search(r"user_(script|function)|attempt to| script: ", text), text
    assert len(text) < 1000 and refused.message, text


def check_case(data, case):
    """The refusal, or AssertionError."""
    refused = data.refusal(case.script, KEYS, case.args)
    check_words(refused)
    assert (refused.code, refused.path) == (case.code, case.path), refused
    assert case.says in refused.message
    value, got = shown(case.value), refused.message.rpartition(", got ")[2]
    assert value is None or got == refused.message or got == value, refused
    return refused


SOME = 20  # digests of all data take longer than what is refused


@pytest.mark.parametrize("script", sorted(BY_SCRIPT))
def test_bad_input_is_refused_by_name_and_changes_nothing(data, script):
    problems, cases = [], BY_SCRIPT[script]
    for first in range(0, len(cases), SOME):
        some = cases[first : first + SOME]
        for case in some:
            try:
                check_case(data, case)
            except AssertionError as problem:
                problems.append(f"{case.title}: {problem}"[:500])
        try:
            data.check_unchanged()
        except AssertionError as problem:
            problems.append(f"one of these changed something: {[case.title for case in some]}: {problem}"[:2000])
    assert not problems, "\n".join(problems[:10])


def test_every_script_has_cases():
    with RedisServer() as server:
        assert {case.script for case in CASES} == set(Driver(server.socket).scripts)


WRONG_KEYS = [
    [], [NAMESPACE], [NAMESPACE + ":meta"], [NAMESPACE, NAMESPACE], [NAMESPACE, NAMESPACE + ":queues"],
    [NAMESPACE + ":meta", NAMESPACE], [*KEYS, NAMESPACE + ":due"],
]  # fmt: skip
SCRIPTS = sorted({case.script for case in CASES})
VALID = {
    **{target.script: target.wrap(encode(target.base)) for target in reversed(TARGETS) if not target.is_nested},
    **{name: [WAITING] for name, one in operations().items() if one.positions in (("id",), ("ids...",))},
    **{"setup": [], "import": [encode(["key", "seq", "string", 0, ["1"]])]},
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_wrong_keys(data, script):
    for keys in WRONG_KEYS:
        refused = data.refusal(script, keys, VALID[script])
        check_words(refused)
        assert refused.code == "INVALID" and refused.path in ("KEYS", "namespace"), keys
        if refused.path == "KEYS":
            assert refused.message == "expected exactly two keys, <namespace> and <namespace>:meta"
    data.check_unchanged()


def test_a_namespace_that_is_not_set_up(data):
    for script in (script for script in SCRIPTS if script not in ("setup", "import")):
        refused = data.refusal(script, ["{other}", "{other}:meta"], VALID[script])
        assert refused.code == "VERSION", script
        assert refused.message == "namespace {other} is not set up: load the scripts, or run setup", script
    data.check_unchanged()


BAD_NAMESPACES = ["", "jq", "{}", "{a b}", "{a}b", "a{b}", "{a{b}", "{a}}", "{a", "a}", "{" + "x" * 65 + "}", "{é}",
                  "{a\n}", "{a\x7f}"]  # fmt: skip


@pytest.mark.parametrize("namespace", BAD_NAMESPACES)
def test_a_bad_namespace_is_refused(data, namespace):
    for script in ("setup", "get"):
        refused = data.refusal(script, [namespace, namespace + ":meta"], VALID[script])
        data.check_unchanged()
        check_words(refused)
        assert refused.code == "INVALID" and refused.path == "namespace"


@pytest.mark.parametrize("meta", ["newer", "cut", "empty"])
def test_data_of_another_schema(data, meta):
    """A namespace that newer scripts have set up: its meta begins with the number of the schema."""
    send = data.driver.redis.send
    kept = send("GET", KEYS[1])
    schema = int.from_bytes(kept[:2], "big")
    assert data.driver.call("setup") == schema
    send("SET", KEYS[1], {"newer": (schema + 1).to_bytes(2, "big") + kept[2:], "cut": kept[:5], "empty": b""}[meta])
    data.remember()
    stored = schema + 1 if meta == "newer" else "unknown"
    known = f"these scripts use {schema}: use scripts of that version"
    try:
        for script in SCRIPTS:
            refused = data.refusal(script, KEYS, VALID[script])
            check_words(refused)
            expected = "CONFLICT" if script == "import" else "VERSION"  # it is set up, says import
            assert refused.code == expected, script
            if refused.code == "VERSION":
                message = f"namespace {NAMESPACE} holds data of schema {stored}, {known}"
                assert refused.message == message, script
        data.check_unchanged()
    finally:
        send("SET", KEYS[1], kept)
        data.remember()


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
