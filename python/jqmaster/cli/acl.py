"""`acl`: what Redis has to grant users, a line for each."""

from __future__ import annotations

from jqmaster.cli.options import Misused, Options, command
from jqmaster.cli.status import EXIT_OK
from jqmaster.manifest.contract import ROLES


@command(f"""acl
print what users of Redis may do, by role
Prints an ACL SETUSER line for each role, or with --role one user's, for
redis-cli to read: jqmaster acl | redis-cli. It asks nobody: the rights are
those of this version's scripts. A line adds to what its user has, and sets no
password. docs/operating.md says what this guards, and what it does not.

--role {"|".join(ROLES)}...  may be given several times, and adds up (default: a user for each)
--user NAME  its name (default: jq-ROLE)
--namespace {{NAME}}={{jq}} $JQ_NAMESPACE  whose keys
--replace  take away what it may now, such as the scripts of a version that has gone
""")
def _acl(options: Options) -> int:
    from jqmaster.bundle.built import builtin
    from jqmaster.engine import rights

    if options.user is not None and not options.role:
        raise Misused(options.parser.prog, "--user goes with --role")
    users = (
        {options.user or f"jq-{'-'.join(dict.fromkeys(options.role))}": options.role}
        if options.role
        else {f"jq-{role}": [role] for role in ROLES}
    )
    for user, roles in users.items():
        granted = [rule for role in roles for rule in rights.rules(role, options.namespace, builtin())]
        print(rights.line(user, granted, replace=options.replace))
    return EXIT_OK
