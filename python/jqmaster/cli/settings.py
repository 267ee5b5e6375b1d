"""`config`, `keys` and `acl`: settings of a namespace, and who may do what."""

from __future__ import annotations

import sys
from typing import Annotated, Any

from cyclopts import App

from jqmaster.cli import show
from jqmaster.cli.declared import verb
from jqmaster.cli.kinds import Duration, option
from jqmaster.cli.reach import NAMESPACE, as_json, connect, current
from jqmaster.cli.status import Refused, Replies
from jqmaster.manifest.contract import ROLES, Role

config = App(name="config")
keys = App(name="keys")


def assignments(texts: tuple[str, ...]) -> dict[str, Any]:
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


@config.default
def config_() -> Replies:
    """Show settings."""
    client = connect()
    yield (client.call("config"), "") if as_json() else (None, _table(client.call("config", describe=True)))


@config.command(name="set")
def _set(*settings: Annotated[str, option("SETTING=VALUE; SETTING= restores the default")]) -> Replies:
    """Change settings, all or none of them."""
    client, given = connect(), assignments(settings)
    described = {one["name"]: one for one in client.call("config", describe=True)}
    unset = [name for name, value in given.items() if value is None]
    after = client.call("config", {name: given[name] for name in given if name not in unset}, unset or None)
    yield after, _table([{**described[name], "value": after[name]} for name in given])


def _table(settings: list[dict[str, Any]]) -> show.Table:
    rows = []
    for one in settings:
        is_own = one["value"] != one["default"]
        value = _shown(one, one["value"]), "bold" if is_own else None
        rows.append({**one, "value": value, "default": _shown(one, one["default"]) if is_own else ""})
    return show.Table("SETTING=name|VALUE>=value|DEFAULT>=default:dim|MEANING~=meaning", rows)


def _shown(setting: dict[str, Any], value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if setting.get("unit") in ("s", "seconds"):
        return show.duration(value)
    return f"{value:,g}" if isinstance(value, float) and value < 1e6 else f"{value:,}"


# -- who may do what ------------------------------------------------------------------------------


@keys.default
def keys_() -> Replies:
    """List keys of the HTTP API.

    Masters ask for keys once there is one, or when others than their own host can reach them. The first is made
    straight on Redis: jqmaster keys create ann --role admin --redis URL
    """
    found = list(connect().each("keys"))
    rows = ({**key, "rate": f"{key['rate']:g}/s" if "rate" in key else ""} for key in found)
    yield (
        found,
        show.Table(
            "KEY=id|NAME~=name|ROLES~=roles|QUEUES~=queues|RATE>=rate|CREATED=created_ms|USED=used_ms|EXPIRES=expires_ms",
            rows,
            empty="there are no keys; masters that only their own host can reach ask for none",
        ),
    )


@keys.command
def create(
    name: Annotated[str, option("whose it is; the audit log has it")],
    /,
    *,
    role: Annotated[list[Role], option("its role; may be given several times")],
    queue: Annotated[list[str] | None, option("bind it to this queue or pattern; may be given several times")] = None,
    expires: Annotated[Duration | None, option("expire after: 12h, 90d")] = None,
    rate: Annotated[float | None, option("requests per second, on each server")] = None,
) -> Replies:
    """Create a key.

    Prints the key, which nobody can ask for again. Programs take it from JQ_KEY, or from a file that JQ_KEY_FILE names.
    """
    made = connect(creates=True).operations.grant(name, role, queues=queue, ttl=expires, rate=rate)
    yield made, str(made["key"])
    if not as_json():
        print(f"key {made['id']} of {show.plain(made['name'])}; it is not shown again", file=sys.stderr)


keys.command(verb("revoke", "Take keys away; masters refuse them at once.", "revoked {name}"), name="revoke")


def acl(
    *,
    role: Annotated[list[Role] | None, option("may be given several times, roles add up; default: a user each")] = None,
    user: Annotated[str | None, option("its name; default: jq-ROLE")] = None,
    replace: Annotated[bool, option("revoke all rights first, such as scripts of a removed version")] = False,
) -> None:
    """Print ACL rules for users of Redis, by role.

    Prints an ACL SETUSER line for each, for redis-cli to read: jqmaster acl | redis-cli. It asks nobody: the rights are
    those of this version's scripts. A line adds to what its user has, and sets no password. docs/operating.md says what
    this guards, and what it does not.
    """
    from jqmaster.bundle.built import builtin
    from jqmaster.engine import rights

    if user is not None and not role:
        raise Refused("--user goes with --role", "INVALID")
    users = {user or f"jq-{'-'.join(dict.fromkeys(role))}": role} if role else {f"jq-{one}": [one] for one in ROLES}
    for name, roles in users.items():
        namespace = current.get().namespace or NAMESPACE
        granted = [rule for one in roles for rule in rights.rules(one, namespace, builtin())]
        print(rights.line(name, granted, replace=replace))
