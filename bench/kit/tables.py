"""How each measurement is stated, run and printed: sides take turns, medians count, ratios are within a round."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

Figures = Mapping[str, float]
"""By what they are, with their unit: what one side measured in one round."""


@dataclass
class Options:
    """What a run was asked for."""

    quick: bool = False
    rounds: int = 5
    peers: bool = True
    against: Path | None = None
    """Another checkout, to be measured beside this one."""

    def count(self, usual: int, quick: int) -> int:
        return quick if self.quick else usual


@dataclass
class Table:
    """`sides` by name, each a function that measures one round; figures of the others are also given over those of the
    `base`. `rounds`: for what comes out the same each time."""

    title: str
    note: str
    sides: dict[str, Callable[[], Figures]]
    base: str = ""
    rounds: int = 0
    found: dict[str, list[Figures]] = field(default_factory=dict)

    def run(self, rounds: int) -> None:
        for turn in range(self.rounds or rounds):
            # Who goes first changes: what else the machine does would favour one.
            for side in list(self.sides)[:: 1 - 2 * (turn % 2)]:
                print(f"{side} …", end="\r", file=sys.stderr, flush=True)
                self.found.setdefault(side, []).append(self.sides[side]())

    def ratio(self, side: str, figure: str) -> float | None:
        if side == self.base or self.base not in self.found:
            return None
        pairs = zip(self.found[side], self.found[self.base], strict=True)
        ratios = [own[figure] / base[figure] for own, base in pairs if figure in own and base.get(figure)]
        return median(ratios) if ratios else None

    def cell(self, side: str, figure: str) -> str:
        values = [figures[figure] for figures in self.found[side] if figure in figures]
        if not values:
            return "–"
        ratio = self.ratio(side, figure)
        return number(median(values)) + (f" ({ratio:.2f} ×)" if ratio is not None else "")

    def markdown(self) -> str:
        sides = [side for side in self.sides if side in self.found]
        columns = list(dict.fromkeys(figure for side in sides for figure in self.found[side][0]))
        lines = [["", *columns], ["---"] * (len(columns) + 1)]
        lines += [[side, *(self.cell(side, figure) for figure in columns)] for side in sides]
        return "\n".join([f"### {self.title}", "", *("| " + " | ".join(line) + " |" for line in lines), "", self.note])


def number(value: float) -> str:
    """Three figures that mean something, and no more."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
