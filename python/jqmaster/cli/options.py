"""Commands and their options: written as their help shows them, read from the environment, checked.

A command is its function, with a text in front of it:

    @asks(\"\"\"queues purge
    discard the jobs of a queue that wait
    More, for the help of this command alone.

    queue NAME
    --status STATE...  in this state; may be given several times
    -y --yes           do not ask
    --limit N=20       at most so many
    \"\"\")

Behind the blank line stands an argument or an option each, and behind two blanks what it means. The word in
capitals names its kind (`KINDS`), `a|b` is one of these, `N(0..5)` has bounds, `...` is for several, `*` for
any number, `?` for one or none. `=` gives a default, `$JQ_PORT` a variable, where it is not the one made of the
words that lead there. One function may be several verbs; `options.verb` says which.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from jqmaster.cli import kinds, show
from jqmaster.cli.status import Refused
from jqmaster.connection.url import FORMS, without_passwords

if TYPE_CHECKING:
    from jqmaster.cli.clients import Client as Client
else:
    Client = Any  # for annotations: with the real one `--help` would be slow

Options = argparse.Namespace
Replies = Iterator[tuple[Any, Any]]
"""What a command tells: documents, and how people see them (`reach.tell`)."""
Coded = Generator[tuple[Any, Any], None, int]
"""The same, and an exit code in the end."""

FORM = (
    "--form FORM $JQ_FORM  "
    "how operations are called: functions, scripts, or auto, which is functions where they can be\n"
)
REDIS = f"""\
--redis URL $JQ_REDIS             a Redis: {FORMS}
--namespace {{NAME}} $JQ_NAMESPACE  with a Redis: the namespace; default {{jq}}
{FORM.replace("  ", "  with a Redis: ")}"""
URL = "--url URL $JQ_URL  a master, http://…; or as --redis\n"
KEY = "--key-file FILE $JQ_KEY_FILE  with a master that asks for a key: a file that has it; or JQ_KEY\n"
REACH = f"""\
--json $JQ_JSON  print JSON
[where to ask]
{URL}{KEY}{REDIS}"""

KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "N": (kinds.positive, "N"),
    "MB": (kinds.positive, "MB"),
    "TIME": (kinds.duration, "TIME"),
    "SPAN": (kinds.span, "TIME"),  # more than 0
    "MOMENT": (kinds.moment, "MOMENT"),
    "PART": (kinds.fraction, "PART"),
    "RATE": (kinds.rate, "N"),
    "PORT": (kinds.port, "PORT"),
    "PLACES": (kinds.reach, "NETWORKS"),
    "SECRETS": (kinds.secrets, "SECRETS"),
    "NETWORKS": (kinds.networks, "NETWORKS"),
    "NAMES": (kinds.names, "NAMES"),
    "DIR": (Path, "DIR"),
    "STATE": (kinds.choice(*show.STATES), "STATE"),
    "IDLE": (kinds.choice(*(state for state in show.STATES if state != "running")), "STATE"),
    "FORM": (kinds.form, "FORM"),
    "{NAME}": (kinds.namespace, "{NAME}"),
}
_MANY = {"...": "+", "*": "*", "?": "?"}
_ASKS = (argparse._HelpAction, argparse._VersionAction)  # which have no variables
_NO = ("", "0", "no", "false", "off")
_YES = ("1", "yes", "true", "on")
Function = TypeVar("Function", bound=Callable[..., Any])


class Command:
    """What a function's text says. `asks`: its function gets a client; `creates`: of a namespace that may be new;
    `into`: of a master, too, `--namespace` is said, which is another than its own."""

    def __init__(
        self, text: str, run: Callable[..., Any], *, asks: bool = False, creates: bool = False, into: bool = False
    ) -> None:
        head, _, self.options = text.partition("\n\n")
        self.name, self.text, *more = head.splitlines()
        self.more = "\n".join(more)
        self.run, self.asks, self.creates, self.into = run, asks, creates, into


def command(text: str) -> Callable[[Function], Function]:
    """Make a command of a function from options to an exit code."""
    return _declared(text)


def asks(text: str, *, creates: bool = False, into: bool = False) -> Callable[[Function], Function]:
    """Make a command of a function of a client and options, which gives `Replies`."""
    return _declared(text, asks=True, creates=creates, into=into)


def _declared(text: str, **given: bool) -> Callable[[Function], Function]:
    def declared(function: Function) -> Function:
        function.__dict__.setdefault("commands", []).insert(0, Command(text, function, **given))
        return function

    return declared


class Misused(Refused):
    """Wrong usage; the parser of which command says it."""

    def __init__(self, prog: str, message: str) -> None:
        super().__init__(message, "INVALID")
        self.prog = prog


class Formatter(argparse.RawDescriptionHelpFormatter):
    """80 columns at most: help is read in narrow windows, and pasted."""

    def __init__(self, prog: str) -> None:
        columns = os.environ.get("COLUMNS", "")
        super().__init__(prog, max_help_position=28, width=min(int(columns) if columns.isdigit() else 80, 80))


class _Made(dict[str, Any]):
    """Parsers by name, each made when it is first asked for: of eighty a call needs one or two."""

    def __getitem__(self, name: str) -> Any:
        kept = super().__getitem__(name)
        if isinstance(kept, partial):
            kept = self[name] = kept()
        return kept


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose options are declared as text, and made when it is first asked: of all commands a call
    needs one."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", Formatter)
        given.setdefault("allow_abbrev", False)  # or a new option would break a script
        super().__init__(**given)
        self.verbs: Any = None
        self.words: tuple[str, ...] = ()
        self._declared: list[tuple[str, bool]] = []
        self._is_complete = False

    def complete(self) -> None:
        """Make its options, once."""
        if not self._is_complete:
            self._is_complete = True
            for lines, hidden in self._declared:
                self._make(lines, hidden)
            _add_environment(self)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.complete()
        self._check_options(args or [])
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        options, left = self.parse_known_args(args, namespace)
        if left:
            getattr(options, "parser", self).error(f"unexpected argument: {' '.join(left)}")
        return options

    def _check_options(self, given: list[str]) -> None:
        """Refuse an option that there is not before its value is taken for something else."""
        known = {flag for action in self._actions for flag in action.option_strings}
        verbs = self.verbs.choices if self.verbs is not None else ()
        for one in given:
            option = one.partition("=")[0]
            if one == "--" or one in verbs:
                return
            if option.startswith("--") and option not in known:
                self.error(f"no such option: {option}{_meant(option, known)}")

    def error(self, message: str) -> NoReturn:
        raise Misused(self.prog, without_passwords(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if isinstance(action, argparse._SubParsersAction) and value not in action.choices:
            close = difflib.get_close_matches(value, action.choices, 1)
            meant = f"; did you mean {close[0]}?" if close else f" (there are: {', '.join(action.choices)})"
            raise argparse.ArgumentError(None, f"no such {action.dest}: {value}{meant}")
        super()._check_value(action, value)

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        # argparse's own would say of a ValueError only that the value is invalid.
        try:
            return _typed(action, arg_string)
        except ValueError as error:
            raise argparse.ArgumentError(action, str(error)) from None

    def add(self, one: Command, *verbs: Command) -> None:
        """Add a command with its verbs, or to one a verb. Without a verb the command itself runs."""
        if self.verbs is None:
            root = {"title": "commands", "required": True, "metavar": "COMMAND", "dest": "command"}
            given = {"title": "verbs", "metavar": "VERB", "dest": "verb"} if self.words else root
            self.verbs = self.add_subparsers(**given)
            self.verbs.choices = self.verbs._name_parser_map = _Made()
        name = one.name.split()[-1]
        self.verbs._choices_actions.append(self.verbs._ChoicesPseudoAction(name, (), one.text))  # for the help
        self.verbs.choices[name] = partial(self._child, one, verbs)

    def _child(self, one: Command, verbs: tuple[Command, ...]) -> Parser:
        """The parser of a command or a verb."""
        words = tuple(one.name.split())
        description = f"{one.text[0].upper()}{one.text[1:]}."
        more = f"{description}\n{one.more}" if one.more else description
        epilog = "Exit codes, and how JSON shows binary data: jqmaster --help"
        parser = Parser(prog=f"{self.prog} {words[-1]}", description=more, epilog=epilog)
        parser.words = words
        parser.set_defaults(which=one, parser=parser)
        parser.declare(one.options)
        if one.asks:
            parser.declare(REACH, hidden=len(words) > 1)  # or what was said in front of a verb would not stand
        for verb in verbs:
            parser.add(verb)
        return parser

    def declare(self, lines: str, *, hidden: bool = False) -> None:
        """Add the arguments and options that a text tells; those behind `[a title]` are a group. `hidden`: where
        one is not given it changes nothing."""
        self._declared.append((lines, hidden))

    def _make(self, lines: str, hidden: bool) -> None:
        group: Any = self
        for line in filter(str.strip, lines.splitlines()):
            if line.startswith("["):
                group = self.add_argument_group(line.strip("[]"))
            else:
                _declare(group, line, hidden)


def _meant(option: str, known: Iterable[str]) -> str:
    names = {flag.strip("-"): flag for flag in sorted(known)}
    name = option.strip("-")
    close = [one for one in names if one.startswith(name)] or difflib.get_close_matches(name, names, 1)
    return f"; did you mean {names[close[0]]}?" if close else ""


def _declare(group: Any, line: str, hidden: bool) -> None:
    spec, _, text = line.strip().partition("  ")
    text = text.strip()
    words = spec.split()
    variable = words.pop()[1:] if words[-1].startswith("$") else None
    flags = [word for word in words if word.startswith("-")]
    kind, default = "" if words[-1] in flags else words[-1], None
    if flags and "=" in kind:
        kind, default = kind.split("=")
    given: dict[str, Any] = {"help": text}
    many = next((mark for mark in _MANY if kind.endswith(mark)), "")
    if kind:
        given |= kind_of(kind.removesuffix(many))
    else:
        given["action"] = "store_true"
    if default is not None:
        given["default"] = default
        given["help"] += "" if "(default" in text else f"{' ' if text else ''}(default: {default})"
    if hidden:
        given["default"] = argparse.SUPPRESS
    if not flags:
        group.add_argument(words[0], **given, **({"nargs": _MANY[many]} if many else {}))
        return
    if many:
        given["action"] = Several
    action = group.add_argument(*flags, **given)
    action.__dict__["variable"] = variable


def kind_of(word: str) -> dict[str, Any]:
    """How argparse takes a kind: its `type` and `metavar`."""
    if bounded := re.fullmatch(r"(\w+)\((-?\d+)\.\.(-?\d+)\)", word):
        return {"metavar": bounded[1], "type": kinds.whole(int(bounded[2]), int(bounded[3]))}
    if "|" in word and word.islower():
        return {"metavar": word, "type": kinds.choice(*word.split("|"))}
    kind, metavar = KINDS.get(word, (str, word))
    return {"metavar": metavar, "type": kind}


class Several(argparse.Action):
    """An option that may be given several times; the first on the command line replaces the environment's."""

    def __call__(self, parser: Any, namespace: Any, value: Any, option: Any = None) -> None:
        seen = self.__dict__.setdefault("seen", [])
        seen.append(value)
        setattr(namespace, self.dest, list(seen))


# -- the environment ------------------------------------------------------------------------------


def parsers(parser: Parser) -> Iterator[tuple[tuple[str, ...], Parser]]:
    """The tree: each parser, with the words that lead to it."""
    parser.complete()
    yield parser.words, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name in action.choices:
                yield from parsers(action.choices[name])


def _add_environment(parser: Parser) -> None:
    """Give each option a variable, show it in the help, and take what it says as the default."""
    for action in parser._actions:
        if action.option_strings and not isinstance(action, _ASKS):
            _add_variable(parser, action, parser.words)


def _add_variable(parser: Any, action: argparse.Action, words: tuple[str, ...]) -> None:
    name = getattr(action, "variable", None) or "_".join(["JQ", *words, action.dest]).upper().replace("-", "_")
    action.__dict__["variable"] = name
    action.help = f"{action.help or ''} [{name}]"
    given = os.environ.get(name)
    if given is None or action.default is argparse.SUPPRESS:
        return
    action.required = False
    if action.nargs == 0:
        is_known = is_yes(given) or given.lower() in _NO
        action.default = is_yes(given) if is_known else _Wrong(f"{name}: expected 1 or 0, got {given!r}")
    else:
        # A text: argparse reads it with the option's type, and refuses it as on the command line. It does
        # not for lists.
        try:
            action.default = [_typed(action, given)] if isinstance(action, Several) else given
        except ValueError as error:
            action.default = [_Wrong(f"{name}: {error}")]
    parser.set_defaults(**{action.dest: action.default})


def is_yes(text: str) -> bool:
    """What a variable says of a flag."""
    return text.lower() in _YES


def _typed(action: argparse.Action, text: str) -> Any:
    return action.type(text) if callable(action.type) else text


class _Wrong(str):
    """What a variable says, and may not."""


def check_environment(options: Options) -> None:
    """Refuse what variables said that argparse does not look at."""
    for value in vars(options).values():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, _Wrong):
                options.parser.error(str(one))
