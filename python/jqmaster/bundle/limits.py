"""Checks a built chunk against two limits of Lua 5.1, so that the build fails and not the load.

A function holds at most 200 locals at a time and uses at most 60 locals of the functions around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from jqmaster.bundle.tokens import BuildError, Cursor, tokenize

MAX_LOCALS = 200
MAX_UPVALUES = 60


@dataclass(slots=True)
class _Function:
    """A function while it is read: its open blocks of local names, and the outer locals it uses."""

    line: int
    blocks: list[list[str]] = field(default_factory=lambda: [[]])
    upvalues: set[tuple[int, str]] = field(default_factory=set)

    def has(self, name: str) -> bool:
        return any(name in block for block in self.blocks)


def check_limits(source: str, file: str) -> None:
    """Raise BuildError if a function in ``source`` has too many locals or upvalues (built lines)."""
    cursor = Cursor(tokenize(source, file), file)
    functions = [_Function(1)]
    becoming: dict[int, list[str]] = {}  # locals by the token where their scope begins
    leaving: dict[int, int] = {}  # blocks that end before a token: repeat … until <expression>
    opened: list[str] = []
    for index, stack in cursor.nesting():
        for _ in range(leaving.pop(index, 0)):
            functions[-1].blocks.pop()
        if index in becoming:
            functions[-1].blocks[-1] += becoming.pop(index)
            if sum(len(block) for block in functions[-1].blocks) > MAX_LOCALS:
                line = cursor.tokens[index].line
                raise BuildError(file, line, f"more than {MAX_LOCALS} locals in one function, Lua allows no more")
        text = cursor.text(index)
        names = [cursor.text(n) for n in cursor.declared_by(index)] if text in ("local", "function", "for") else []
        if text == "function":
            functions.append(_Function(cursor.tokens[index].line, [names]))
        elif text == "local":
            becoming.setdefault(_scope_start(cursor, index, len(names)), []).extend(names)
        elif text in ("do", "if", "repeat"):
            functions[-1].blocks.append([])
        elif text in ("else", "elseif"):
            functions[-1].blocks[-1].clear()
        elif text == "until":
            end = cursor.after_expression(index + 1)
            leaving[end] = leaving.get(end, 0) + 1
        elif text == "end":
            if opened[-1] == "function":
                functions.pop()
            else:
                functions[-1].blocks.pop()
        elif cursor.is_name(index) and cursor.text(index - 1) not in (".", ":", "function"):
            if not cursor.is_table_key(index, stack):
                _use(functions, text, cursor, index)
        if text == "for":
            # The loop's own block opens at its 'do'; three more locals hold its state.
            becoming.setdefault(_loop_body(cursor, index), []).extend([*names, "(for)", "(for)", "(for)"])
        opened = stack[-1:]


def _scope_start(cursor: Cursor, index: int, count: int) -> int:
    """Where the names declared by the ``local`` at ``index`` become visible."""
    if cursor.text(index + 1) == "function":
        return index + 1
    equals = index + 2 * count
    return cursor.expressions(equals + 1)[-1][1] if cursor.text(equals) == "=" else equals


def _loop_body(cursor: Cursor, index: int) -> int:
    """The token behind the ``do`` of the ``for`` at ``index``."""
    while cursor.text(index) not in ("=", "in"):
        index += 1
    return cursor.expressions(index + 1)[-1][1] + 1


def _use(functions: list[_Function], name: str, cursor: Cursor, index: int) -> None:
    """Note a use of ``name`` in the innermost function, and in those it passes through."""
    for depth in range(len(functions) - 1, -1, -1):
        if functions[depth].has(name):
            break
    else:
        return
    for function in functions[depth + 1 :]:
        function.upvalues.add((depth, name))
        if len(function.upvalues) > MAX_UPVALUES:
            raise BuildError(
                cursor.file,
                cursor.tokens[index].line,
                f"the function at line {function.line} uses more than {MAX_UPVALUES} outer locals, Lua allows no more",
            )
