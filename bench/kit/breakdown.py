"""Where the instructions of a script go: inner Redis commands, C functions called from Lua, Lua itself."""

from __future__ import annotations

from dataclasses import dataclass

from kit.callgrind import CountedServer, Profile

# Each is called a number of times of its own, so that callgrind's call counts tell which address is which:
# distributions strip the names of these static functions.
PROBES = {
    "string.format": "string.format('%d', i)",
    "string.sub": "string.sub('abc', 1, 2)",
    "string.byte": "string.byte('abc', 1)",
    "string.char": "string.char(65)",
    "string.find": "string.find('abc', 'b', 1, true)",
    "string.match": "string.match('abc', '^%l+$')",
    "string.gsub": "string.gsub('abc', 'b', 'c')",
    "string.rep": "string.rep('a', 3)",
    "string.len": "string.len('a')",
    "string.lower": "string.lower('A')",
    "struct.pack": "struct.pack('>I4', 1)",
    "struct.unpack": "struct.unpack('>I4', 'abcd')",
    "cmsgpack.pack": "cmsgpack.pack(1)",
    "cmsgpack.unpack": "cmsgpack.unpack('a')",
    "cmsgpack.unpack_one": "cmsgpack.unpack_one('a')",
    "tonumber": "tonumber('1')",
    "tostring": "tostring(1)",
    "type": "type(1)",
    "select": "select('#', 1)",
    "unpack": "unpack({1})",
    "next": "next({1})",
    "pairs": "pairs({1})",
    "ipairs": "ipairs({1})",
    "pcall": "pcall(1)",
    "table.concat": "table.concat({'a'})",
    "table.insert": "table.insert({}, 1)",
    "table.sort": "table.sort({1})",
    "math.floor": "math.floor(1)",
    "redis.call": "redis.call('PING')",
    "redis.pcall": "redis.pcall('PING')",
    "redis.error_reply": "redis.error_reply('A b')",
    "redis.status_reply": "redis.status_reply('A')",
    "bit.band": "bit.band(1, 1)",
}


# The same for what the interpreter itself does; each loop makes one kind of call into the rest of Lua.
VM_PROBES = {
    "functions created": "local f = function() end",
    "tables created": "local t = {}",
    "reads of fields and globals": "local t = string",
    "writes of fields": "t.a = i",
    "concatenations": "local s = i .. 'a'",
}


@dataclass
class Names:
    """Addresses in this redis-server of functions that have no symbol."""

    precall: str  # luaD_precall, which calls every C function that a script calls
    execute: str  # luaV_execute, the interpreter
    collector: str  # luaC_step
    functions: dict[str, str]
    inside: dict[str, str]  # what luaV_execute calls


def learn_names(server: CountedServer) -> Names:
    wire = server.wire()
    counts = {name: 211 + 7 * number for number, name in enumerate([*PROBES, *VM_PROBES])}
    loops = [f"for i = 1, {counts[name]} do local _ = {call} end" for name, call in PROBES.items()]
    server.zero()
    wire.call("EVAL", "\n".join(loops), 0)
    profile = server.count()
    precall = _precall(profile)
    called = profile.called_by(precall)
    functions = _by_count(called, counts)
    functions[max(called, key=lambda address: called[address][0])] = "luaD_poscall (returning from them)"
    for address, (calls, _) in profile.called_by("luaCallFunction").items():
        if address.startswith("0x"):
            functions[address] = "KEYS and ARGV into Lua" if calls == 2 else "reply out of Lua"

    callers = {caller: cost for (caller, called), cost in profile.edges.items() if called == precall}
    execute = max(callers, key=lambda address: profile.own[address])

    loops = [f"for i = 1, {counts[name]} do {action} end" for name, action in VM_PROBES.items()]
    counts["tables created"] += 1  # the one the loops write to
    server.zero()
    wire.call("EVAL", "local t = {}\n" + "\n".join(loops), 0)
    for _ in range(60):  # Redis steps the collector on every 50th call
        wire.call("EVAL", "return 1", 0)
    profile = server.count()
    wire.close()
    collector = max(profile.called_by("lua_gc").items(), key=lambda item: item[1][1])[0]
    return Names(precall, execute, collector, functions, _by_count(profile.called_by(execute), counts))


def _by_count(called: dict[str, list[int]], counts: dict[str, int]) -> dict[str, str]:
    by_count = {calls: address for address, (calls, _) in called.items()}
    return {by_count[calls]: name for name, calls in counts.items() if calls in by_count}


def _precall(profile: Profile) -> str:
    packers = ("mp_unpack", "mp_unpack_full", "mp_pack")
    callers = {caller for (caller, called) in profile.edges if called in packers}
    for name in sorted(callers):
        if len(profile.called_by(name)) > 10:
            return name
    raise RuntimeError(f"luaD_precall was not found among {callers}")


Row = tuple[str, float, float]
"""(name, calls per job, instructions per job)"""


@dataclass
class Breakdown:
    total: float
    commands: list[Row]
    functions: list[Row]
    call_overhead: float
    script: float
    lua_itself: float
    inside: list[Row]
    collector: float
    outside: list[Row]


def split(profile: Profile, names: Names, jobs: int) -> Breakdown:
    """Divide a profile of calls of one operation; all figures are per job."""

    def rows(costs: dict[str, list[int]]) -> list[Row]:
        found = [(name, calls / jobs, cost / jobs) for name, (calls, cost) in costs.items()]
        return sorted(found, key=lambda row: -row[2])

    commands = {
        name: cost
        for name, cost in profile.called_by("call").items()
        if name.endswith("Command") and not name.startswith(("eval", "fcall", "function", "script"))
    }
    functions: dict[str, list[int]] = {}
    for address, cost in profile.called_by(names.precall).items():
        name = names.functions.get(address, address)
        functions.setdefault(name, [0, 0])
        functions[name] = [a + b for a, b in zip(functions[name], cost, strict=True)]
    in_calls = sum(functions.get(name, [0, 0])[1] for name in ("redis.call", "redis.pcall"))
    in_commands = sum(cost for _, cost in commands.values())
    others = {name: cost for name, cost in functions.items() if name not in ("redis.call", "redis.pcall")}
    script = profile.edges.get(("luaCallFunction", "lua_pcall"), [0, 0])[1]
    outside = {
        f"luaCallFunction: {names.functions.get(name, name)}": cost
        for name, cost in profile.called_by("luaCallFunction").items()
        if name != "lua_pcall"
    }
    return Breakdown(
        total=profile.total / jobs,
        commands=rows(commands),
        functions=rows(others),
        call_overhead=(in_calls - in_commands) / jobs,
        script=script / jobs,
        lua_itself=(script - in_calls - sum(cost for _, cost in others.values())) / jobs,
        inside=[
            ("the interpreter's own instructions", 0, profile.own[names.execute] / jobs),
            ("setting up calls", profile.calls[names.precall] / jobs, profile.own[names.precall] / jobs),
            *rows({n: profile.edges.get((names.execute, a), [0, 0]) for a, n in names.inside.items()}),
        ],
        collector=sum(
            cost / jobs
            for (caller, called), (_, cost) in profile.edges.items()
            if called == names.collector and caller != called
        ),
        outside=rows(outside),
    )
