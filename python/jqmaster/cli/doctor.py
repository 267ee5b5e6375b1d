"""`doctor`: what is wrong, what it means, and what to do."""

from __future__ import annotations

import argparse
import asyncio
import textwrap
from typing import TYPE_CHECKING, Any

from jqmaster.cli import show, values
from jqmaster.cli.options import Parser, command, reach
from jqmaster.cli.reach import on_redis, place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from jqmaster.doctor.finding import Finding

_MORE = """\
Exit code 1 if there is a problem or a warning. By way of a master Redis itself
is not looked at: give --redis for that. Nothing is changed."""
_MARKS = {"problem": ("✗", "red"), "warning": ("!", "yellow"), "note": ("·", "blue"), "ok": ("✓", "green")}


def add(commands: Any) -> None:
    parser = reach(command(commands, "doctor", _doctor, "look for what is wrong, and say what to do", _MORE))
    parser.option("--quiet", action="store_true", help="only what is wrong")


def _doctor(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.doctor import doctor

    where = place(options)
    findings = _of_redis(options) if where.is_redis else asyncio.run(_of_master(where.url))
    if options.quiet:
        findings = [finding for finding in findings if finding.level in ("problem", "warning")]
    wrong = doctor.is_wrong(findings)
    if options.json:
        values.print_lines(finding.document() for finding in findings)
        return EXIT_FAILED if wrong else EXIT_OK
    for finding in findings:
        _print(finding)
    if not where.is_redis and not options.quiet:
        print(show.paint("· Redis itself was not looked at; --redis URL does", "dim"))
    print(_summary(str(where), findings))
    return EXIT_FAILED if wrong else EXIT_OK


def _of_redis(options: argparse.Namespace) -> list[Finding]:
    from jqmaster.doctor import doctor, redis_side
    from jqmaster.doctor.facts import EngineSource

    with on_redis(place(options)) as client:
        server = client.run(redis_side.look(client.engine))
        if server.trouble:
            return sorted(redis_side.check(server), key=lambda finding: doctor.ORDER.index(finding.level))
        found: list[Finding] = client.run(doctor.examine(EngineSource(client.engine), server))
        return found


async def _of_master(url: str) -> list[Finding]:
    from jqmaster.client import AsyncClient
    from jqmaster.doctor import doctor
    from jqmaster.doctor.facts import ClientSource

    async with AsyncClient(url) as client:
        return await doctor.examine(ClientSource(client))


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


def _summary(where: str, findings: list[Finding]) -> str:
    levels = [finding.level for finding in findings]
    counts = [
        show.counted(levels.count("problem"), "problem"),
        show.counted(levels.count("warning"), "warning"),
    ]
    named = [text for text, level in zip(counts, ("problem", "warning"), strict=True) if level in levels]
    return f"{where}: {', '.join(named) or 'all well'}"
