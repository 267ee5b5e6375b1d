"""`completion`: what bash, zsh and fish are to run for TAB. It is made from the tree of parsers."""

from __future__ import annotations

import argparse
from typing import Any

from jqmaster.cli.options import Options, command, parsers
from jqmaster.cli.status import EXIT_OK

_BASH = """\
_jqmaster() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" words="" path="" i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "$path ${COMP_WORDS[i]}" in
%(steps)s
        esac
    done
    case "$path $prev" in
%(values)s
    esac
    if [[ -z "$words" ]]; then
        case "$path" in
%(options)s
        esac
    fi
    if [[ "$words" == "@files" ]]; then
        COMPREPLY=($(compgen -f -- "$cur"))
    else
        COMPREPLY=($(compgen -W "$words" -- "$cur"))
    fi
}
complete -o bashdefault -o default -F _jqmaster jqmaster
"""


@command("""completion
print a completion script for a shell
  bash:  source <(jqmaster completion bash)    # in ~/.bashrc
  zsh:   source <(jqmaster completion zsh)     # in ~/.zshrc, behind compinit
  fish:  jqmaster completion fish | source     # in ~/.config/fish/config.fish

shell bash|zsh|fish
""")
def _completion(options: Options) -> int:
    tree = list(parsers(options.root))
    if options.shell == "fish":
        print(_fish(tree), end="")
    else:
        # zsh runs bash's way of completing, so that there is one script to keep right.
        print("autoload -U +X bashcompinit && bashcompinit\n" * (options.shell == "zsh") + _bash(tree), end="")
    return EXIT_OK


def _children(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Commands or verbs, and what each is for."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {one.dest: one.help or "" for one in action._choices_actions}
            return {name: texts.get(name, "") for name in action.choices}
    return {}


def _flags(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings]


def _values(action: argparse.Action) -> tuple[str, ...]:
    words = getattr(action.type, "words", None) or action.choices
    return tuple(str(word) for word in words) if words else ()


def _bash(tree: list[tuple[Any, Any]]) -> str:
    steps, values, options = [], [], []
    for words, parser in tree:
        path = "".join(f" {word}" for word in words)
        children = _children(parser)
        for child in children:
            steps.append(f'            "{path} {child}") path="{path} {child}" ;;')
        for action in _flags(parser):
            if action.nargs != 0 and not isinstance(action, argparse._HelpAction):
                told = " ".join(_values(action)) or "@files"
                values += [f'        "{path} {flag}") words="{told}" ;;' for flag in action.option_strings]
        positional = [word for one in parser._actions if not one.option_strings for word in _values(one)]
        own = [] if children else positional
        flags = [flag for action in _flags(parser) for flag in action.option_strings if flag.startswith("--")]
        options.append(f'            "{path}") words="{" ".join([*children, *own, *flags])}" ;;')
    return _BASH % {"steps": "\n".join(steps), "values": "\n".join(values), "options": "\n".join(options)}


def _fish(tree: list[tuple[Any, Any]]) -> str:
    lines = ["complete -c jqmaster -e"]
    first = " ".join(_children(tree[0][1]))
    for words, parser in tree:
        children = _children(parser)
        seen = " ".join(f"; and __fish_seen_subcommand_from {word}" for word in words)[6:]
        condition = seen or f"not __fish_seen_subcommand_from {first}"
        if words and children:
            condition = f"{seen}; and not __fish_seen_subcommand_from {' '.join(children)}"
        for name, text in children.items():
            lines.append(f"complete -c jqmaster -f -n {_quoted(condition)} -a {name} -d {_quoted(text)}")
        for action in _flags(parser):
            named = next((flag for flag in action.option_strings if flag.startswith("--")), "")
            takes = "" if action.nargs == 0 or isinstance(action, argparse._HelpAction) else " -r"
            among = f" -f -a {_quoted(' '.join(_values(action)))}" if _values(action) else ""
            text = (action.help or "").partition(" [JQ_")[0].replace("%(default)s", str(action.default))
            if named:
                lines.append(
                    f"complete -c jqmaster -n {_quoted(seen or condition)} -l {named[2:]}{takes}{among} "
                    f"-d {_quoted(text)}"
                )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
