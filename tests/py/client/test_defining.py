"""What can be a job, and what options can be said: all else is refused where it stands, and says what to do."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from jqmaster import JQ, Handle, checkpoint, progress
from jqmaster.errors import Invalid


class Shop:
    def sell(self, what: str) -> str:
        return what

    async def order(self, what: str) -> str:
        return what

    def __call__(self, what: str) -> str:
        return what


class Waiting:
    async def __call__(self, what: str) -> str:
        return what


def say(what: str) -> str:
    return what


async def asay(what: str) -> str:
    return what


REFUSED: list[tuple[Any, str]] = [
    (Shop, "job it: expected a function, got <class"), (max, "job it: its parameters are not known"),
    ("say", "got 'say'"), (classmethod(say), "got <classmethod"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_a_job(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        JQ().job(name="it")(function)


PROCESSES: list[tuple[Any, str]] = [
    (asay, "for plain functions"), (functools.partial(say), "at the top"), (Shop(), "at the top"), ({}.get, "top"),
    (Shop().sell, "at the top"), (lambda: 1, "at the top of a module, by their names"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "message"), PROCESSES, ids=range(len(PROCESSES)))
def test_what_no_process_finds(function: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"job it: .*{message}"):
        JQ().job(name="it", process=True)(function)


def test_what_is_called_as_a_function_is_a_job(redis_url: str, namespace: str) -> None:
    jq = JQ(redis_url, namespace=namespace, max_retry=0)
    functions = [
        Shop().sell, Shop().order, Shop(), Waiting(), functools.partial(say), functools.partial(asay),
        staticmethod(say), functools.lru_cache(say), lambda what: what, str.upper, jq.job(say),
    ]  # fmt: skip
    handles: list[Handle[Any]] = [jq.job(name=f"it-{n}")(one).enqueue("A") for n, one in enumerate(functions)]
    jq.burst()
    assert jq.gather(handles, timeout=60) == ["A"] * len(handles)


def test_an_option_that_there_is_none_of_is_refused_where_it_stands() -> None:
    jq, given = JQ(), {"prio": 5}
    task = jq.job(name="mail")(say)
    places: list[tuple[Callable[[], Any], str]] = [
        (lambda: jq.job(name="other", **given)(say), " of job other"), (lambda: task.options(**given), " of job mail"),
        (lambda: jq.task("far", **given), " of job far"), (lambda: jq.new_job("far", 1, **given), " of job far"),
        (lambda: jq.schedule(every=5, options=given)(task), " of job mail"), (lambda: JQ(**given), ""),
    ]  # fmt: skip
    for place, of in places:
        with pytest.raises(TypeError, match=f"^no such option{of}: prio, did you mean priority"):
            place()
    assert not jq.recurring


@pytest.mark.parametrize(("option", "value", "message"), [
    ("delay", "5", "expected seconds"), ("delay", True, "expected seconds"), ("tags", "urgent", "expected a list"),
    ("tags", iter(()), "cannot be packed as MessagePack: there is no type for tuple_iterator"),
])  # fmt: skip
def test_a_wrong_option_is_refused_when_a_job_is_enqueued(
    redis_url: str, namespace: str, option: str, value: Any, message: str
) -> None:
    with pytest.raises(Invalid, match=rf"jobs\[0\].{option}: {message}"):
        JQ(redis_url, namespace=namespace).job(name="mail", **{option: value})(say).enqueue("a")


@pytest.mark.parametrize("option", ["retry_on", "give_up_on"])
def test_rules_of_a_kind_are_checked(option: str) -> None:
    for value in ("ValueError", [ValueError], (ValueError, 5), ValueError("no")):
        with pytest.raises(TypeError, match=f"job mail: {option}: expected an exception's class, .* got "):
            JQ().job(name="mail", **{option: value})(say)  # type: ignore[call-overload]


SCHEDULES: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"evry": 5}, TypeError, "no such option: evry, did you mean every\\?; there are: args, catch_up, "),
    ({"every": 5, "args": ()}, TypeError, r"schedule mail, mail\(what: .*missing a"),
]


@pytest.mark.parametrize(("when", "kind", "message"), SCHEDULES, ids=range(len(SCHEDULES)))
def test_a_schedule_that_cannot_be_is_refused_where_it_stands(when: Any, kind: type[Exception], message: str) -> None:
    jq = JQ()
    task = jq.job(name="mail")(say)
    with pytest.raises(kind, match=message):
        jq.schedule(**{"args": ("a",), **when})(task)
    assert not jq.recurring


MISTAKES: list[tuple[Callable[[JQ, Any], object], type[Exception], str]] = [
    (lambda jq, task: jq.enqueue(task, "a"), TypeError, "expected the name of a job, got <task mail>"),
    (lambda jq, task: jq.enqueue_many([task]), TypeError, "expected a call, as task.job.* makes, got <task mail>"),
    (lambda jq, task: jq.chain(task, task.job("a")), TypeError, "expected a call, .* got <task mail>"),
    (lambda jq, task: jq.repeat("daily", task, every=5), TypeError, "expected a call, .* got <task mail>"),
    (lambda jq, task: jq.dependency_results(), LookupError, "while it runs"),
    (lambda jq, task: progress(1), LookupError, r"progress\(\) is for .* while it runs"),
    (lambda jq, task: checkpoint(1), LookupError, r"checkpoint\(\) is for .* while it runs"),
    (lambda jq, task: jq.operations.kik(), AttributeError, "there is no operation kik, did you mean kick?"),
    (lambda jq, task: jq.job(lambda what: what), TypeError, "has no name"),
    (lambda jq, task: jq.job(name="other", retry=3)(say), TypeError, "there are: .*retry_on"),
    (lambda jq, task: JQ(namspace="{a}"), TypeError, "namspace, did you mean namespace?"),  # type: ignore[call-arg]
    (lambda jq, task: JQ("localhost:6379").enqueue("a"), ValueError, "localhost:6379: expected .* http://, .* redis://"),
    (lambda jq, task: asyncio.run(_run_in_a_loop(jq)), RuntimeError, "with no event loop running"),
]  # fmt: skip


async def _run_in_a_loop(jq: JQ) -> None:
    jq.run()


@pytest.mark.parametrize(("does", "kind", "message"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_told_in_words_of_the_one_who_made_it(does: Any, kind: type[Exception], message: str) -> None:
    jq = JQ("redis://127.0.0.1:9")
    with pytest.raises(kind, match=message):
        does(jq, jq.job(name="mail")(say))
