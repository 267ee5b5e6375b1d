"""The head of a script is the contract of its operation: it is read whole, or refused."""

from __future__ import annotations

import re

import pytest
from operations import check

from jqmaster.manifest import manifest
from jqmaster.manifest.contract import Argument, Operation, type_of

KICK = """\
-- Takes running jobs away. They wait again.
--
-- The workers
-- are told.
--
-- @arg    ids    list<job>? 1..1000      the jobs; or
-- @arg    queue  queue?                  all of
--         a queue
-- @arg    delay  seconds? 0.. = 5        how long
-- @reply  states jobs
-- @reply  {kicked: integer, more: flag} with queue  how many
-- @errors INVALID field, NOTFOUND queue (it is gone, or was never there)
-- @flags  drain
-- @role   operator
-- @role   server with delay
-- @http   POST /queue/{queue}/kick
-- @param  timeout  seconds? 0..300  to wait
"""


def read(head: str) -> Operation:
    return manifest.read("kick", manifest.comment_of((head + "local x = 1 -- @arg y\n").splitlines()))


def test_a_head_is_read() -> None:
    kick = read(KICK)
    assert kick.summary == "Takes running jobs away. They wait again."
    assert kick.description == "The workers are told."
    ids, queue, delay = kick.arguments
    assert ids == Argument(
        name="ids", type="list<job>", optional=True, least=1, most=1000, meaning="the jobs; or"
    )  # fmt: skip
    assert (queue.meaning, delay.least, delay.most, delay.default) == ("all of a queue", 0, None, 5)
    assert [kick.reply(given).type for given in ({}, {"ids": ["0"]}, {"queue": False}, {"queue": "a"})] == [
        "states",
        "states",
        "states",
        "{kicked: integer, more: flag}",
    ]
    assert [(one.code, one.path, one.why) for one in kick.errors] == [
        ("INVALID", "field", ""),
        ("NOTFOUND", "queue", "it is gone, or was never there"),
    ]
    assert kick.flags == "drain"
    [route] = kick.routes
    queried, body = kick.stand(route)
    assert (route.method, route.place, queried, [one.name for one in body]) == ("POST", "queue", [], ["ids", "timeout"])


@pytest.mark.parametrize(
    ("roles", "given", "may"),
    [({"operator"}, (), True), ({"viewer"}, (), False), ({"admin"}, (), True), ({"admin"}, ("delay",), False)],
)
def test_a_role_may_call_it_with_what_is_not_kept_from_it(roles: set, given: tuple[str, ...], may: bool) -> None:
    assert (read(KICK).lacking(frozenset(roles), given) == ()) == may


@pytest.mark.parametrize(
    ("line", "instead", "problem"),
    [
        ("-- @flags  drain\n", "", "expected one @flags, got 0"),
        ("@errors", "@error", "there is no @error"),
        ("= 5", "=5", "= DEFAULT, with blanks between"),
        ("POST /queue", "POST queue", "cannot be read"),
    ],
)
def test_a_head_that_cannot_be_read_is_refused(line: str, instead: str, problem: str) -> None:
    assert line in KICK
    with pytest.raises(ValueError, match=f"kick: .*{re.escape(problem)}"):
        read(KICK.replace(line, instead))


@pytest.mark.parametrize(
    ("line", "instead", "problem"),
    [
        ("-- Takes running jobs away. They wait again.", "-- takes jobs", "begins with a sentence"),
        ("@arg    queue  queue?", "@arg    queue  queues?", "there is no type queues"),
        ("@arg    queue  queue?", "@arg    ids  queue?", "an @arg is there twice"),
        ("@flags  drain", "@flags  drains", "expected read, drain or write"),
        ("-- @reply  states jobs\n", "", "there is no @reply"),
        ("-- @role   operator\n", "", "there is no @role"),
        ("@role   operator", "@role   boss", "there is no role boss"),
        ("{queue}", "{name}", "there is no @arg name"),
    ],
)
def test_a_head_that_says_what_it_may_not_is_refused_where_all_is_made_of_it(
    line: str, instead: str, problem: str
) -> None:
    assert line in KICK
    with pytest.raises(SystemExit, match=f"kick: .*{re.escape(problem)}"):
        check([read(KICK.replace(line, instead))])


def test_a_request_belongs_to_one_operation() -> None:
    one, other = read(KICK), manifest.read("other", manifest.comment_of(KICK.replace("{queue}", "{ids}").splitlines()))
    with pytest.raises(SystemExit, match=r"other: POST /queue/\{ids\}/kick is a request of kick, too"):
        check([one, other])


def test_types_hold_others() -> None:
    found = type_of("page<{tag: name, count: integer}>")
    assert (found.kind, found.of and found.of.members) == (
        "page", (("tag", type_of("name")), ("count", type_of("integer"))),
    )  # fmt: skip
    assert type_of("list<done|error>").of == type_of("done|error")
    assert type_of("Job?").optional
