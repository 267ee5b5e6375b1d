"""What a built script has cost by each of its top-level statements, found by returning there."""

from __future__ import annotations

import re

from kit.callgrind import CountedServer
from kit.contenders import JQ
from kit.wire import Command, Wire, pack

JOBS = 200
RETURN = "do return 1 end"
LONG = re.compile(r"\[(=*)\[.*?\]\1\]", re.DOTALL)
OPENS = re.compile(r"\b(function|if|for|while|do|repeat|until|end)\b")
Step = tuple[float, str]
"""(instructions a call until there, the statement's first line)"""


def statements(lines: list[str]) -> list[int]:
    """Lines of built Lua on which a top-level statement begins."""
    depth = brackets = 0
    found = []
    # What long strings say is no Lua.
    plain = LONG.sub(lambda found: '""' + "\n" * found[0].count("\n"), "\n".join(lines))
    for number, line in enumerate(plain.split("\n")):
        if depth == 0 and brackets == 0 and line and not re.match(r"[)}\].]|and\b|or\b|#!", line):
            found.append(number)
        text = re.sub(r'"(\\.|[^"\\])*"', '""', line)
        loop = False
        for word in OPENS.findall(text):
            if word in ("end", "until"):
                depth -= 1
            elif word != "do" or not loop:
                depth += 1
            loop = word in ("for", "while") or (loop and word != "do")
        brackets += sum(map(text.count, "({[")) - sum(map(text.count, ")}]"))
    return found


def calls(wire: Wire, jq: JQ, operation: str) -> list[Command]:
    """Calls of ``operation`` on a namespace that has what they need, and has seen such a job before."""
    jq.prepare(wire)
    wire.pipelined(jq.enqueue(8, 1))
    wire.pipelined(jq.finish(jq.picked(wire.pipelined(jq.pick(8, 1)), 1), 1))
    if operation == "enqueue":
        return jq.enqueue(JOBS, 1)
    wire.pipelined(jq.enqueue(2 * JOBS, 1))
    if operation == "pick":
        return jq.pick(JOBS, 1)
    tokens = jq.picked(wire.pipelined(jq.pick(JOBS, 1)), 1)
    return jq.finish(tokens, 1) if operation == "finish" else jq.finish_next(tokens, 1)


def steps(server: CountedServer, jq: JQ, operation: str) -> list[Step]:
    wire = server.wire()
    script = operation.partition("_")[0]
    jq.prepare(wire)
    lines = jq.source[script].split("\n")
    found: list[Step] = []
    for number in [None, *statements(lines)]:
        if number is None:
            cut, what = lines, "the whole script"
        elif re.match(r"(local )?function\b|return\b", lines[number]):
            continue
        else:
            cut, what = [*lines[:number], RETURN, *lines[number:]], lines[number]
        commands = calls(wire, jq, operation)
        sha = wire.call("SCRIPT", "LOAD", "\n".join(cut))
        server.zero()
        wire.pipelined([command.replace(jq.sha[script], sha) for command in commands])
        found.append((server.count().total / JOBS, what))
    wire.close()
    return [*found[1:], found[0]]


def price(server: CountedServer, snippet: str) -> float:
    """What a piece of Lua costs in a script, the collector's share included."""
    wire = server.wire()
    costs = []
    for source in ("return 1", snippet + "\nreturn 1"):
        command = pack("EVALSHA", wire.call("SCRIPT", "LOAD", source), 2, "{jq}", "{jq}:meta", "argument")
        wire.pipelined([command] * 400)
        server.zero()
        wire.pipelined([command] * 400)
        costs.append(server.count().total / 400)
    wire.close()
    return costs[1] - costs[0]
