"""`config` and `audit`: the namespace's settings, and whether its indexes hold."""

from __future__ import annotations

from typing import Any

from jqmaster.cli import show
from jqmaster.cli.options import Client, Coded, Options, Replies, asks
from jqmaster.cli.progress import Progress
from jqmaster.cli.reach import redis_place
from jqmaster.cli.status import EXIT_FAILED, EXIT_OK, Refused


def assignments(texts: list[str]) -> dict[str, Any]:
    """`name=value` each; None for `name=`. Raises Refused."""
    given: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise Refused(f"{text}: expected SETTING=VALUE, such as result_ttl=600", "INVALID")
        given[name] = _value(name, value) if value else None
    return given


def _value(name: str, text: str) -> bool | float | str:
    if name == "route":
        return text
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        raise Refused(f"{name}: expected a number, true or false, got {text!r}", "INVALID") from None


@asks("""config
show and change settings
""")
def _config(client: Client, options: Options) -> Replies:
    if options.json:
        yield client.config(), ""
    else:
        yield None, _table(client.describe_config())


def _table(settings: list[dict[str, Any]]) -> show.Table:
    table = show.Table("SETTING | VALUE> | DEFAULT>:dim | MEANING~1")
    for one in settings:
        is_own = one["value"] != one["default"]
        value = _valued(one, one["value"]), "bold" if is_own else None
        table.add(one["name"], value, _valued(one, one["default"]) if is_own else "", one["meaning"])
    return table


def _valued(setting: dict[str, Any], value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if setting.get("unit") in ("s", "seconds"):
        return show.duration(value)
    return f"{value:,g}" if isinstance(value, float) and value < 1e6 else f"{value:,}"


@asks("""config set
change settings, all or none

settings SETTING=VALUE...  SETTING= is its default again
""")
def _set(client: Client, options: Options) -> Replies:
    given = assignments(options.settings)
    described = {one["name"]: one for one in client.describe_config()}
    after = client.configure(**given)
    yield after, _table([{**described[name], "value": after[name]} for name in given])


@asks("""audit
recount all indexes against the job records
Needs Redis itself. A quiet namespace has no problems; exit code 1 if it has.
""")
def _audit(client: Client, options: Options) -> Coded:
    where = redis_place(options, "audit")
    problems: list[str] = []
    cursor = ""
    with Progress("auditing", unit="steps") as bar:
        while cursor != "0":
            step = client.ask(lambda it, cursor=cursor: it.audit(cursor or "0"))  # type: ignore[misc]
            problems += step.problems
            cursor = step.cursor
            bar.add(1)
    found = show.counted(len(problems), "problem") if problems else "no problems"
    yield {"problems": problems}, "\n".join([*map(show.plain, problems), f"{where.namespace}: {found}"])
    return EXIT_FAILED if problems else EXIT_OK
