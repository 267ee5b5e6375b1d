"""`doctor`: what is wrong, what it means, and what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

from jqmaster.cli import show
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect, current
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Coded

if TYPE_CHECKING:
    from jqmaster.doctor.finding import Finding

_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue"), "ok": ("✓", "green")}
_MOST_ALIKE = 20  # titles of one block


def doctor(
    *,
    quiet: Annotated[bool, option("only problems")] = False,
    all_: Annotated[bool, option("list similar findings one by one", name="--all")] = False,
) -> Coded:
    """Look for problems and say what to do.

    Exit code 1 if there is a problem or a warning. By way of a master Redis itself is not looked at: give --redis for
    that. Nothing is changed.
    """
    from jqmaster.doctor import doctor as examination

    findings = connect().ask(examination.look)
    if quiet:
        findings = [finding for finding in findings if finding.level in ("problem", "warning")]
    yield [finding.document() for finding in findings], lambda: _print_all(findings, quiet=quiet, apart=all_)
    return EXIT_FAILED if examination.is_wrong(findings) else EXIT_OK


def _print_all(findings: list[Finding], *, quiet: bool, apart: bool) -> None:
    place = current.get().place()
    alike: dict[Any, list[Finding]] = {}
    for number, finding in enumerate(findings):
        alike.setdefault(number if apart else (finding.level, finding.check), []).append(finding)
    for block in alike.values():
        _print(block)
    if not place.is_redis and not quiet:
        print("· Redis itself was not looked at; --redis URL does")
    levels = [finding.level for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{place}: {', '.join(counts) or 'all well'}")


def _print(alike: list[Finding]) -> None:
    from rich.text import Text

    first = alike[0]
    mark, style = _MARKS[first.level]
    for finding in alike[:_MOST_ALIKE]:
        show.say(Text(f"{mark} {show.plain(finding.title)}", style)) if show.is_cut() else print(mark, finding.title)
    if len(alike) > _MOST_ALIKE:
        print(f"  … and {show.count(len(alike) - _MOST_ALIKE)} more like these; --all")
    whose = f"{first.about}: " if len(alike) > 1 and first.about else ""
    for text, prefix in ((first.means, "    "), (first.do, "  → ")):
        if text:
            lines = textwrap.wrap(show.plain(whose + text), 90, break_on_hyphens=False)
            print("\n    ".join([prefix + lines[0], *lines[1:]]))
            whose = ""
