"""What the doctor tells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

Level = Literal["problem", "warning", "note", "ok"]


@dataclass(frozen=True)
class Finding:
    """`check` is a stable name; `about` the queue, constraint, … concerned; `means` and `do` are sentences.

    `problem`: jobs do not run or may be lost. `warning`: somebody should look. `note`: good to know. `ok`:
    the check found nothing. `since_ms`: since when it has been so, as far as that is known; `as_of_ms`: when it was
    looked at. Both are Unix milliseconds.
    """

    check: str
    level: Level
    title: str
    means: str = ""
    do: str = ""
    about: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    since_ms: int | None = None
    as_of_ms: int = 0

    def document(self) -> dict[str, Any]:
        return asdict(self)


Found = tuple[Any, ...]
"""Level, title, means, do, about, values, since_ms: a `Finding`, as far as there is something to say."""


class Checks:
    """Functions from facts to what they find, each with its name and what is said where it finds nothing."""

    def __init__(self) -> None:
        self._all: list[tuple[str, str, Callable[[Any], Iterator[Found]]]] = []

    def __call__(self, name: str, fine: str = "") -> Callable[..., Any]:
        return lambda one: self._all.append((name, fine, one))

    def of(self, facts: Any) -> Iterator[Finding]:
        """What all of them find. `facts.now_ms`: when they were gathered, by Redis's clock as near as it is known."""
        for name, fine, one in self._all:
            found = [replace(Finding(name, *each), as_of_ms=facts.now_ms) for each in one(facts)]
            yield from found or ([Finding(name, "ok", fine, as_of_ms=facts.now_ms)] if fine else [])
