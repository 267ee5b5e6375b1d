"""`doctor`: what is wrong, what it means, and what to do."""

from __future__ import annotations

import textwrap
from typing import Annotated

from jqmaster.cli import show
from jqmaster.cli.kinds import option
from jqmaster.cli.reach import connect, current
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Coded
from jqmaster.engine.replies import Document

_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue"), "ok": ("✓", "green")}


def doctor(*, quiet: Annotated[bool, option("only problems and warnings")] = False) -> Coded:
    """Look for problems and say what to do.

    Exit code 1 if there is a problem or a warning. By way of a master Redis itself is not looked at: give --redis for
    that. Nothing is changed.
    """
    from jqmaster.doctor import doctor as examination

    findings = connect().ask(examination.look)
    if quiet:
        findings = [finding for finding in findings if finding["level"] in ("problem", "warning")]
    yield findings, lambda: _print(findings)
    return EXIT_FAILED if examination.is_wrong(findings) else EXIT_OK


def _print(findings: list[Document]) -> None:
    """What is to be done about several of a kind is told once, behind them."""
    from rich.text import Text

    last = {(finding["level"], finding["kind"]): finding for finding in findings}
    for finding in findings:
        mark, style = _MARKS[finding["level"]]
        show.say(Text(f"{mark} {show.plain(finding['text'])}", style))
        if finding is not last[finding["level"], finding["kind"]]:
            continue
        for text, prefix in ((finding.get("means"), "    "), (finding.get("advice"), "  → ")):
            if text:
                print("\n    ".join(textwrap.wrap(prefix + show.plain(text), 94, break_on_hyphens=False)))
    if current.get().server()[1] is None:
        print("· Redis itself was not looked at; --redis URL does")
    levels = [finding["level"] for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{current.get()}: {', '.join(counts) or 'all well'}")
