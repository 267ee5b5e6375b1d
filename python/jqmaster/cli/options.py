"""Options: how they are declared, read from the environment, checked, and shown in the help."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from jqmaster.connection.url import FORMS, without_passwords

FORM_HELP = "how operations are called: functions, scripts, or auto, which is functions where they can be"

Run = Callable[[argparse.Namespace, "Parser"], int]
_ASKS = (argparse._HelpAction, argparse._VersionAction)  # which have no variables
_NO = ("", "0", "no", "false", "off")
_YES = ("1", "yes", "true", "on")


class Formatter(argparse.RawDescriptionHelpFormatter):
    """80 columns at most: help is read in narrow windows, and pasted."""

    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        super().__init__(prog, max_help_position=28, width=min(int(columns) if columns.isdigit() else 80, 80))


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that knows which words lead to it."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", Formatter)
        options.setdefault("allow_abbrev", False)  # or a new option would break a script
        super().__init__(**options)
        self.words: tuple[str, ...] = ()
        self.verbs: Any = None

    def error(self, message: str) -> NoReturn:
        """One line, and where to read more: the usage of a command with many options hides what is wrong."""
        self.exit(2, f"{self.prog}: {without_passwords(message)}\nSee {self.prog} --help\n")

    def option(self, *flags: str, variable: str | None = None, **given: Any) -> argparse.Action:
        """`add_argument` for an option; `variable` instead of the one made from its name."""
        action = self.add_argument(*flags, **given)
        action.__dict__["variable"] = variable
        return action


def command(commands: Any, name: str, run: Run, text: str, more: str = "", **given: Any) -> Parser:
    """Add a command. `text` is what the list of commands says, `more` what its own help adds."""
    description = f"{text[0].upper()}{text[1:]}."
    parser: Parser = commands.add_parser(
        name, help=text, description=f"{description}\n{more}" if more else description, **given
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def verbs(parser: Parser) -> Any:
    """Where the verbs of a command are added, `queues pause …`. Without a verb the command itself runs."""
    return parser.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)


def reach(parser: Parser, *, nested: bool = False, json: bool = True) -> Parser:
    """The options of all commands that ask a master or Redis. `nested`: of a verb, where what was said in
    front of the verb must stand."""
    default: Any = argparse.SUPPRESS if nested else None
    group: Any = parser.add_argument_group("where to ask")
    for flags, variable, metavar, text, kind in (
        ("--url", "JQ_URL", "URL", "a master, http://…; or as --redis", str),
        ("--redis", "JQ_REDIS", "URL", f"a Redis: {FORMS}", str),
        ("--namespace", "JQ_NAMESPACE", "{NAME}", "with a Redis: the namespace; default {jq}", namespace),
        ("--form", "JQ_FORM", "FORM", f"with a Redis: {FORM_HELP}", form),
    ):
        action = group.add_argument(flags, default=default, type=kind, help=text, metavar=metavar)
        action.variable = variable
    if json:
        shown = argparse.SUPPRESS if nested else False
        action = parser.add_argument("--json", action="store_true", default=shown, help="print JSON")
        action.__dict__["variable"] = "JQ_JSON"
    return parser


class Several(argparse.Action):
    """An option that may be given several times; the first on the command line replaces the environment's."""

    def __call__(self, parser: Any, namespace: Any, value: Any, option: Any = None) -> None:
        seen = self.__dict__.setdefault("seen", [])
        seen.append(value)
        setattr(namespace, self.dest, list(seen))


# -- the environment ------------------------------------------------------------------------------


def parsers(parser: argparse.ArgumentParser, words: tuple[str, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """The tree: each parser, with the words that lead to it."""
    yield words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from parsers(child, (*words, name))


def add_environment(root: argparse.ArgumentParser) -> None:
    """Give each option a variable, show it in the help, and take what it says as the default."""
    for words, parser in parsers(root):
        for action in parser._actions:
            if action.option_strings and not isinstance(action, _ASKS):
                _add_variable(parser, action, words)


def _add_variable(parser: Any, action: argparse.Action, words: tuple[str, ...]) -> None:
    name = getattr(action, "variable", None) or "_".join(["JQ", *words, action.dest]).upper().replace("-", "_")
    action.__dict__["variable"] = name
    action.help = f"{action.help or ''} [{name}]"
    given = os.environ.get(name)
    if given is None or action.default is argparse.SUPPRESS:
        return
    action.required = False
    if action.nargs == 0:
        if given.lower() not in (*_YES, *_NO):
            action.default = _Wrong(f"{name}: expected 1 or 0, got {given!r}")
        else:
            action.default = given.lower() in _YES
    else:
        # A text: argparse reads it with the option's type, and refuses it as on the command line. It does
        # not for lists.
        action.default = [_typed(action, given)] if isinstance(action, Several) else given
    parser.set_defaults(**{action.dest: action.default})


def _typed(action: argparse.Action, text: str) -> Any:
    try:
        return action.type(text) if callable(action.type) else text
    except argparse.ArgumentTypeError as error:
        return _Wrong(f"{action.__dict__['variable']}: {error}")


class _Wrong(str):
    """What a variable says, and may not."""


def check_environment(options: argparse.Namespace, parser: Parser) -> None:
    """Refuse what variables said that argparse does not look at."""
    for value in vars(options).values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, _Wrong):
                parser.error(str(one))


def describe_more(root: argparse.ArgumentParser) -> None:
    """The last line of each command's help."""
    for words, parser in parsers(root):
        if words and not parser.epilog:
            parser.epilog = "Exit codes, and how JSON shows binary data: jqmaster --help"


# -- kinds of values ------------------------------------------------------------------------------


def namespace(text: str) -> str:
    from jqmaster.engine.scripts import check_namespace

    try:
        return check_namespace(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def choice(*words: str) -> Callable[[str], str]:
    """One of these; unlike argparse's own `choices`, also when it comes from the environment."""

    def one_of(text: str) -> str:
        if text not in words:
            known = " or ".join(one for one in (", ".join(words[:-1]), words[-1]) if one)
            raise argparse.ArgumentTypeError(f"expected {known}, got {text!r}")
        return text

    one_of.__dict__["words"] = words
    return one_of


form = choice("auto", "functions", "scripts")


def port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def positive(text: str) -> int:
    return whole(1, 1_000_000_000)(text)


def whole(least: int, most: int) -> Callable[[str], int]:
    """A whole number in these bounds."""

    def number(text: str) -> int:
        digits = text.removeprefix("-")
        if not digits.isascii() or not digits.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a whole number of at least {least}, got {text!r}")
        if int(text) > most:
            raise argparse.ArgumentTypeError(f"expected a whole number of at most {most}, got {text!r}")
        return int(text)

    return number


_UNITS = {
    "ms": 0.001, "s": 1, "second": 1, "m": 60, "min": 60, "minute": 60, "h": 3600, "hour": 3600,
    "d": 86400, "day": 86400, "w": 604800,
}  # fmt: skip


def duration(text: str) -> float:
    """Seconds, or a number with a unit: 90, 1.5s, 5m, 2h, 1d."""
    stripped = text.strip()
    number = stripped.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = stripped[len(number) :].strip() or "s"
    try:
        seconds = float(number) * _UNITS[unit]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 <= seconds <= 1e10:
        raise argparse.ArgumentTypeError(f"expected seconds, or a number with ms, s, m, h, d or w, got {text!r}")
    return seconds


def span(text: str) -> float:
    """A duration of more than 0."""
    seconds = duration(text)
    if not seconds:
        raise argparse.ArgumentTypeError(f"expected more than 0 seconds, got {text!r}")
    return seconds


def moment(text: str) -> float:
    """Unix seconds: a number of them, or an ISO 8601 moment; without an offset it is local time."""
    from datetime import datetime

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"expected a moment such as 2030-01-31T18:00 or 2030-01-31T18:00Z, or Unix seconds, got {text!r}"
        ) from None


def fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 1, got {text!r}")
    return value
