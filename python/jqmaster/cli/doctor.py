"""`doctor`: what is wrong, what it means, and what to do."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, asks
from jqmaster.cli.reach import place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from jqmaster.doctor.finding import Finding

_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue"), "ok": ("✓", "green")}


@asks("""doctor
look for what is wrong, and say what to do
Exit code 1 if there is a problem or a warning. By way of a master Redis itself
is not looked at: give --redis for that. Nothing is changed.

--quiet  only what is wrong
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
    for finding in findings:
        _print(finding)
    if not where.is_redis and not options.quiet:
        print(show.paint("· Redis itself was not looked at; --redis URL does", "dim"))
    levels = [finding.level for finding in findings]
    counts = [show.counted(levels.count(level), level) for level in ("problem", "warning") if level in levels]
    print(f"{where}: {', '.join(counts) or 'all well'}")


def _print(finding: Finding) -> None:
    mark, colour = _MARKS[finding.level]
    print(f"{show.paint(mark, colour)} {show.plain(finding.title)}")
    columns = show.screen_width()
    for text, style in ((finding.means, None), (finding.do, "cyan")):
        if not text:
            continue
        prefix = "    " if style is None else "  → "
        lines = textwrap.wrap(show.plain(text), (columns or 100) - 4, break_on_hyphens=False) or [""]
        for number, line in enumerate(lines):
            print(f"{prefix if not number else '    '}{show.paint(line, style)}")
