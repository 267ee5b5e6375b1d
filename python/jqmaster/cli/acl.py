"""`acl`: the rights of users of Redis."""

from __future__ import annotations

from typing import Annotated

from jqmaster.cli.kinds import option
from jqmaster.cli.reach import NAMESPACE, current
from jqmaster.cli.status import Refused
from jqmaster.manifest.contract import ROLES, Role


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
    from jqmaster.bundle.build import builtin
    from jqmaster.engine import rights

    if user is not None and not role:
        raise Refused("--user goes with --role", "INVALID")
    users = {user or f"jq-{'-'.join(dict.fromkeys(role))}": role} if role else {f"jq-{name}": [name] for name in ROLES}
    for name, roles in users.items():
        namespace = current.get().namespace or NAMESPACE
        granted = [rule for part in roles for rule in rights.rules(part, namespace, builtin())]
        print(rights.line(name, granted, replace=replace))
