"""`doctor`: what is wrong, what it means, and what to do."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, asks
from jqmaster.cli.reach import place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from jqmaster.doctor.finding import Finding

_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue"), "ok": ("✓", "green")}
_MOST_ALIKE = 20  # titles of one block


@asks("""doctor
look for what is wrong, and say what to do
Exit code 1 if there is a problem or a warning. By way of a master Redis itself
is not looked at: give --redis for that. Nothing is changed.

--quiet  only what is wrong
--all    each of what is alike, with what to do
""")
def _doctor(client: Client, options: Options) -> Coded:
    from jqmaster.doctor import doctor

    findings = client.ask(doctor.look)
    if options.quiet:
        findings = [finding for finding in findings if finding.level in ("problem", "warning")]
    yield [finding.document() for finding in findings], lambda: _print_all(findings, options)
    return EXIT_FAILED if doctor.is_wrong(findings) else EXIT_OK


def _print_all(findings: list[Finding], options: Options) -> None:
    where = place(options)
    for alike in _blocks(findings, apart=options.all):
        _print(alike)
    if not where.is_redis and not options.quiet:
        print(show.paint("· Redis itself was not looked at; --redis URL does", "dim"))
    levels = [finding.level for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{where}: {', '.join(counts) or 'all well'}")


def _blocks(findings: Iterable[Finding], *, apart: bool) -> list[list[Finding]]:
    """Findings that say the same of different things stand together."""
    if apart:
        return [[finding] for finding in findings]
    alike: dict[tuple[str, ...], list[Finding]] = {}
    for finding in findings:
        alike.setdefault((finding.level, finding.check, _shape(finding)), []).append(finding)
    return list(alike.values())


def _shape(finding: Finding) -> str:
    """The title without what it is about and without numbers."""
    title = finding.title.replace(finding.about, "…") if finding.about else finding.title
    return re.sub(r"[\d,.]+( (s|min|h|d)\b)?|\b(jobs?|leases?|waits?)\b", "#", title)


def _print(alike: list[Finding]) -> None:
    first = alike[0]
    mark, colour = _MARKS[first.level]
    for finding in alike[:_MOST_ALIKE]:
        print(f"{show.paint(mark, colour)} {show.plain(finding.title)}")
    if len(alike) > _MOST_ALIKE:
        print(f"  … and {show.counted(len(alike) - _MOST_ALIKE, 'more like these', 'more like these')}; --all")
    columns = show.screen_width()
    whose = f"{first.about}: " if len(alike) > 1 and first.about else ""
    for text, style in ((first.means, None), (first.do, "cyan")):
        if not text:
            continue
        text, whose = whose + text, ""
        prefix = "    " if style is None else "  → "
        lines = textwrap.wrap(show.plain(text), (columns or 100) - 4, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            print(f"{prefix if not number else '    '}{show.paint(line, style)}")
