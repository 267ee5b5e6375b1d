"""A bar on stderr for work that takes a while, on a terminal only."""

from __future__ import annotations

import sys
import time

from jqmaster.cli import show

_EVERY_S = 0.1
_BAR = 24


class Progress:
    """`with Progress("retrying", total) as progress: progress.add(100)`. Without a total it counts."""

    def __init__(self, what: str, total: int | None = None, unit: str = "jobs") -> None:
        self._what = what
        self._total = total
        self._unit = unit
        self._done = 0
        self._begun = time.monotonic()
        self._shown = 0.0
        self._drawn = False
        self._live = show.is_terminal(sys.stderr)

    def add(self, number: int) -> None:
        self._done += number
        now = time.monotonic()
        # What is over at once needs no bar.
        if self._live and now - self._begun > 2 * _EVERY_S and now - self._shown >= _EVERY_S:
            self._shown = now
            self._draw(now)

    def _draw(self, now: float) -> None:
        self._drawn = True
        rate = self._done / max(1e-6, now - self._begun)
        text = f"{self._what} {show.count(self._done)} {self._unit}, {show.count(rate)}/s"
        if self._total:
            share = min(1.0, self._done / self._total)
            left = (self._total - self._done) / rate if rate else 0
            text = (
                f"{self._what} {show.bar(share, _BAR)} {share:4.0%}  {show.count(self._done)} of "
                f"{show.count(self._total)}, {show.count(rate)}/s, {show.duration(max(0, round(left)))} left"
            )
        sys.stderr.write(f"\r\x1b[K{show.cut(text, (show.screen_width() or 80) - 1)}")
        sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
