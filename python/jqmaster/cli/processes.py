"""`serve`, `work`, `load`: what runs, and what is loaded."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.config import Env

from jqmaster.cli.kinds import Count, Duration, Names, Networks, Port, PushTo, Secrets, Span, between, option
from jqmaster.cli.reach import NAMESPACE, current
from jqmaster.cli.status import Refused
from jqmaster.connection.url import is_redis, without_password
from jqmaster.errors import brought_by

if TYPE_CHECKING:
    from jqmaster.client.app import JQ

Logs = Literal["text", "json"]
Memory = Annotated[int, between(0, 1 << 30)]
# Variables of these are JQ_ and the option's name, as processes are told.
serve = App(name="serve", config=Env("JQ_", command=False, show=False))
work = App(name="work", config=Env("JQ_", command=False, show=False))


@Parameter(name="*")
@dataclass
class Serve:
    host: Annotated[str, option("address to listen on")] = "127.0.0.1"
    port: Annotated[Port, option("0 for any free one")] = 8400
    allowed_hosts: Annotated[Names | None, option("more host names to accept; * for any")] = None
    root_path: Annotated[str, option("path under which a proxy serves it: /jq")] = ""
    insecure: Annotated[bool, option("listen to other hosts without keys: anybody may do anything")] = False
    tls_cert: Annotated[Path | None, option("PEM certificate, to serve HTTPS")] = None
    tls_key: Annotated[Path | None, option("PEM key; default: in the certificate's file")] = None
    trusted_proxies: Annotated[Networks | None, option("proxies trusted to name users: 10.0.0.5,fd00::/64")] = None
    push_to: Annotated[PushTo, option("networks to push to, * for any; default: private ones; with --host none")] = None
    data_dir: Annotated[Path, option("data directory of its own Redis")] = Path("var")
    max_memory: Annotated[Memory | None, option("MiB its own Redis may use, 0: any; default: half the machine's")] = (
        None
    )
    recreate: Annotated[bool, option("set up the namespace again, empty, if it vanishes from Redis")] = False
    stop_timeout: Annotated[Span, option("time limit for stopping, in s")] = 10
    access_log: Annotated[bool, option("log a line for each request")] = False
    log_format: Annotated[Logs, option("format of the log on stderr")] = "text"
    environment: Annotated[str, option("name of this system in the web UI's header: production")] = ""
    environment_color: Annotated[
        Literal["grey", "blue", "green", "amber", "red", "purple"], option("color of that name")
    ] = "grey"


@serve.default
def _serve(*, given: Serve | None = None) -> int:
    """Run a JQ server.

    Without --redis it starts its own Redis, with data in --data-dir.
    """
    with brought_by("server", "serve"):
        from jqmaster.server.server import ServeOptions, run
    from jqmaster.worker import joblog

    where, options = current.get(), vars(given or Serve())
    joblog.configure(options.pop("log_format"), verbose=where.verbose)
    memory = options.pop("max_memory")
    return run(
        ServeOptions(
            redis_url=where.redis_only,
            namespace=where.namespace or NAMESPACE,
            trusted_proxies=options.pop("trusted_proxies") or (),
            stop_timeout_s=options.pop("stop_timeout"),
            allowed_hosts=options.pop("allowed_hosts") or (),
            max_memory=None if memory is None else memory << 20,
            **options,
        )
    )


@Parameter(name="*")
@dataclass
class Work:
    queues: Annotated[Names | None, option("separated by commas; default: those of its jobs")] = None
    concurrency: Annotated[Count, option("jobs at a time")] = 8
    process_jobs: Annotated[Count | None, option("renew a process after this many jobs")] = None
    name: Annotated[str | None, option("its name; default: host, process id and a random part", "JQ_WORKER_NAME")] = (
        None
    )
    register: Annotated[bool, option("without --push: register, to be listed and asked to be quiet or stop")] = False
    push: Annotated[bool, option("listen for pushed jobs")] = False
    push_host: Annotated[str, option("with --push: address to listen on")] = "127.0.0.1"
    push_port: Annotated[Port, option("with --push: 0 for any free one")] = 0
    push_secrets: Annotated[Secrets | None, option("with --push: run only jobs signed with one of these")] = None
    advertise: Annotated[str | None, option("with --push: URL at which servers reach it")] = None
    recreate: Annotated[bool, option("set up the namespace again, empty, if it vanishes from Redis")] = False
    stop_timeout: Annotated[Duration, option("time that running jobs have to finish, in s")] = 8
    log_format: Annotated[Logs | None, option("log format; default: as the program has it, or text")] = None


@work.default
def _work(
    program: Annotated[str, Parameter(name="MODULE:NAME")], /, *, given: Work | None = None
) -> int:  # fmt: skip
    """Run a worker.

    MODULE:NAME is a JQ object, such as hello:jq. It takes jobs from where the object does, from a server or Redis
    (--url, several servers with commas between; --redis), or has them pushed.
    """
    from jqmaster.worker import joblog

    where, options = current.get(), dict(vars(given or Work()))
    url = where.chosen()
    jq = _program(program)
    joblog.configure(options.pop("log_format"), verbose=where.verbose)
    options |= {
        "host": options.pop("push_host"),
        "port": options.pop("push_port"),
        "drain_timeout_s": options.pop("stop_timeout"),
        "push_secrets": options["push_secrets"] or (),
    }
    asks_redis = is_redis(url or jq.url)
    changed: dict[str, Any] = {"recreate": options.pop("recreate") or jq.target.recreate}
    changed["namespace"] = where.namespace if asks_redis else where.said_namespace
    if changed["namespace"] is None and asks_redis:
        changed["namespace"] = jq.namespace
    if url:
        changed["url"] = url
    if where.key_file:
        changed |= {"key": None, "key_file": where.key_file}
    jq.connect(replace(jq.target, **changed))
    try:
        worker = jq.worker(**options)
    except (OSError, ValueError) as error:
        raise Refused(f"{program}: {error}", "INVALID") from None
    return worker.run(ends_process=True)


def _program(where: str) -> JQ:
    """The JQ object that the command line names."""
    from jqmaster.client.app import JQ

    module_name, _, attribute = where.partition(":")
    if "/" in module_name or module_name.endswith(".py"):
        raise Refused(f"{where}: expected a module, not a file, such as myapp.jobs:jq", "INVALID")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, attribute or "jq")
    except (ImportError, AttributeError, ValueError) as error:
        raise Refused(f"{where}: {error}", "INVALID") from None
    if not isinstance(found, JQ):
        raise Refused(f"{where}: expected a JQ object", "INVALID")
    return found


def load() -> None:
    """Load the scripts into Redis, and set the namespace up."""
    from jqmaster.bundle.build import builtin
    from jqmaster.cluster.cluster import open_engine
    from jqmaster.errors import JQError

    where = current.get()
    url, namespace = where.redis_only, where.namespace or NAMESPACE
    if url is None:
        raise Refused("load needs Redis itself: give --redis URL, or JQ_REDIS", "INVALID")

    async def loaded() -> tuple[str, Any]:
        engine = open_engine(url, namespace)
        try:
            version = await engine.load()
            return version, await engine.redis.hget(f"{engine.namespace}:manifest", "library")
        finally:
            await engine.close()

    try:
        version, library = asyncio.run(loaded())
    except (JQError, ValueError) as error:
        raise Refused(f"cannot use Redis at {without_password(url)}: {error}", "UNAVAILABLE") from None
    for name, script in sorted(builtin().items()):
        print(f"{script.sha}  {name}")
    what = f"the scripts and of the functions {library.decode()}" if library else "the scripts"
    print(f"version {version} of {what} is in {without_password(url)}, {namespace}")
