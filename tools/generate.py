"""Writes what is made of the table of operations: their reference in docs/clients.md."""

from __future__ import annotations

from pathlib import Path

from jqmaster.wire.operation import Operation, Reply
from jqmaster.wire.operations import OPERATIONS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "clients.md"
BEGIN, END = "<!-- operations: written by make generate -->\n", "<!-- end of operations -->\n"
_HEAD = ("operation", "request", "script", "role", "answer", "errors")


def with_reference(page: str) -> str:
    """A page with the section between the markers made anew."""
    before, _, rest = page.partition(BEGIN)
    _, _, behind = rest.partition(END)
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, OPERATIONS.values())]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{before}{BEGIN}\n{table}\n{END}{behind}"


def _row(one: Operation) -> tuple[str, ...]:
    return (
        one.name,
        f"`{one.method} {one.path}`",
        f"`{one.script}`" if one.script else "",
        one.role or "",
        _answer(one.reply),
        " ".join(one.errors),
    )


def _answer(reply: Reply) -> str:
    if reply.media:
        return f"`{reply.media}`"
    if reply.names:
        return f"`{{{', '.join(reply.names)}}}`"
    return "" if reply.shape in ("nothing", "own") else "a document"


def main() -> None:
    PAGE.write_text(with_reference(PAGE.read_text()))


if __name__ == "__main__":
    main()
