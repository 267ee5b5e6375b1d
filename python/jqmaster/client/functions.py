"""What can be a job: functions, and all that is called as one. The rest is refused where it is decorated."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def is_async(function: Any) -> bool:
    """Whether a call gives a coroutine; also of an object that is called as a function."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def check_callable(function: Any) -> None:
    """Raise TypeError for what cannot be called."""
    if not callable(function):
        about = "; decorate a function that calls it" if isinstance(function, classmethod) else ""
        raise TypeError(f"expected a function, got {function!r}{about}")


def check(function: Callable[..., Any], name: str, *, process: bool) -> None:
    """Raise TypeError, which names the job, for what cannot be one."""
    if problem := _problem(function) or (_problem_of_process(function) if process else None):
        raise TypeError(f"job {name}: {problem}")


def _problem(function: Callable[..., Any]) -> str | None:
    if inspect.isclass(function):
        return f"expected a function, got the class {function.__qualname__}; decorate a function that makes one"
    called = (function, type(function).__call__)
    if any(inspect.isgeneratorfunction(part) or inspect.isasyncgenfunction(part) for part in called):
        return "a generator has no result; return a list, or enqueue a job for each value"
    if inspect.isfunction(function) and _is_in_class(function.__qualname__):
        first = next(iter(inspect.signature(function).parameters), "")
        if first in ("self", "cls"):
            return f"a method's {first} cannot travel; decorate a function, or below @staticmethod"
    return None


def _is_in_class(qualname: str) -> bool:
    outer = qualname.rpartition(".")[0]
    return bool(outer) and not outer.endswith("<locals>")


def _problem_of_process(function: Callable[..., Any]) -> str | None:
    if is_async(function):
        return "process=True is for plain functions, not for async ones"
    if not inspect.isfunction(function) or "<" in function.__qualname__:  # <locals>, <lambda>
        return "a process finds only functions at the top of a module, by their names"
    return None
