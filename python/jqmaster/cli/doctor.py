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
_MOST_ALIKE = 20  # texts of one block


def doctor(
    *,
    quiet: Annotated[bool, option("only problems")] = False,
    all_: Annotated[bool, option("list all that are alike, not just twenty", name="--all")] = False,
) -> Coded:
    """Look for problems and say what to do.

    Exit code 1 if there is a problem or a warning. By way of a master Redis itself is not looked at: give --redis for
    that. Nothing is changed.
    """
    from jqmaster.doctor import doctor as examination

    findings = connect().ask(examination.look)
    if quiet:
        findings = [finding for finding in findings if finding["level"] in ("problem", "warning")]
    yield findings, lambda: _print_all(findings, quiet=quiet, most=len(findings) if all_ else _MOST_ALIKE)
    return EXIT_FAILED if examination.is_wrong(findings) else EXIT_OK


def _print_all(findings: list[Document], *, quiet: bool, most: int) -> None:
    place = current.get().place()
    blocks: dict[tuple[str, str], list[Document]] = {}
    for finding in findings:
        blocks.setdefault((finding["level"], finding["kind"]), []).append(finding)
    for alike in blocks.values():
        _print(alike, most)
    if not place.is_redis and not quiet:
        print("· Redis itself was not looked at; --redis URL does")
    levels = [finding["level"] for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{place}: {', '.join(counts) or 'all well'}")


def _print(alike: list[Document], most: int) -> None:
    """Findings of a kind, and what is to be done, once."""
    from rich.text import Text

    mark, style = _MARKS[alike[0]["level"]]
    for finding in alike[:most]:
        line = f"{mark} {show.plain(finding['text'])}"
        show.say(Text(line, style)) if show.is_cut() else print(line)
    if len(alike) > most:
        print(f"  … and {show.count(len(alike) - most)} more like these; --all")
    for text, prefix in ((alike[0].get("means"), "    "), (alike[0].get("advice"), "  → ")):
        if text:
            lines = textwrap.wrap(show.plain(text), 90, break_on_hyphens=False)
            print("\n    ".join([prefix + lines[0], *lines[1:]]))
