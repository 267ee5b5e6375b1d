"""`serve`, `work`, `load`, `demo`, `version`: what runs, and what is loaded."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import Any

from jqmaster.cli.options import FORM, KEY, REDIS, URL, Misused, Options, command
from jqmaster.cli.places import NAMESPACE
from jqmaster.cli.reach import said_key_file, said_namespace, url_of
from jqmaster.cli.status import EXIT_OK, EXIT_UNAVAILABLE
from jqmaster.connection.url import is_redis, without_password
from jqmaster.errors import JQError, brought_by

_RECREATE = """\
--recreate $JQ_RECREATE  set the namespace up again, empty, when it vanishes from Redis; else stop until it is back
"""


@command(
    f"""serve
run a JQ master
Without --redis it starts its own Redis, with data in --data-dir. --push-to
takes networks and hosts with commas between, * for any.

{REDIS}{_RECREATE}
--host HOST=127.0.0.1 $JQ_HOST               listen there
--port PORT=8400 $JQ_PORT                    0 for any free one
--unix PATH $JQ_UNIX                         listen on this unix socket instead
--allowed-hosts HOSTS $JQ_ALLOWED_HOSTS      more names that browsers may ask it by, with commas between; * for any
--insecure $JQ_INSECURE                      listen to others although there are no keys: everybody may do everything
--tls-cert FILE $JQ_TLS_CERT                 PEM: serve HTTPS with it
--tls-key FILE $JQ_TLS_KEY                   PEM: its key (default: in the certificate's file)
--trusted-proxies NETWORKS $JQ_TRUSTED_PROXIES  proxies that say who a user is, with commas between: 10.0.0.5,fd00::/64
--proxy-user-header NAME=x-forwarded-user $JQ_PROXY_USER_HEADER  in which they do
--proxy-roles-header NAME=x-forwarded-roles $JQ_PROXY_ROLES_HEADER  and what roles the user has; viewer without it
--session-idle SPAN=1h $JQ_SESSION_IDLE      how long a login of the web UI holds that nobody uses
--push-to PLACES $JQ_PUSH_TO                 where workers may be (default: private networks, or none beyond loopback)
--push-secrets SECRETS $JQ_PUSH_SECRETS      one or two, whsec_…, better as a variable: sign pushes to workers without
--max-memory N(0..1073741824) $JQ_MAX_MEMORY  MiB an own Redis may hold, 0: any (default: half of what is free)
--data-dir DIR=var $JQ_DATA_DIR              where an own Redis keeps its data
--stop-timeout SPAN=10s $JQ_STOP_TIMEOUT     how long a stop may take
--access-log                                 log a line for each request and each delivery
--log-format text|json $JQ_LOG_FORMAT        of the log, on stderr (default: text)
--environment NAME $JQ_ENVIRONMENT           what the web UI calls this system in its header: production
--environment-color grey|blue|green|amber|red|purple=grey $JQ_ENVIRONMENT_COLOR  and in which color
--metrics-queues N(1..1000)=100 $JQ_METRICS_QUEUES  queues that /metrics shows one by one
"""
)
def _serve(options: Options) -> int:
    with brought_by("server", "serve"):
        from jqmaster.server.server import ServeOptions, run
    from jqmaster.server.session import Proxies
    from jqmaster.worker import joblog

    joblog.configure(options.log_format, verbose=options.verbose)
    same = (
        "host port unix data_dir recreate access_log metrics_queues insecure tls_cert tls_key push_to environment_color"
    ).split()
    user_header, roles_header = options.proxy_user_header.lower(), options.proxy_roles_header.lower()
    return run(
        ServeOptions(
            redis_url=options.redis,
            **_redis_given(options),
            **{name: getattr(options, name) for name in same},
            stop_timeout_s=options.stop_timeout,
            allowed_hosts=options.allowed_hosts.split(",") if options.allowed_hosts else (),
            max_memory=None if options.max_memory is None else options.max_memory << 20,
            session_idle_s=options.session_idle,
            environment=options.environment or "",
            proxies=Proxies(options.trusted_proxies or (), user_header, roles_header),
            push_secrets=options.push_secrets or (),
        )
    )


def _redis_given(options: Options) -> dict[str, Any]:
    return {"namespace": options.namespace or NAMESPACE, "form": options.form or "auto"}


@command(
    f"""load
load the scripts into Redis and set the namespace up

{REDIS}
--keep N $JQ_KEEP  versions of the scripts that stay, this one included (default: as said last, or 2)
"""
)
def _load(options: Options) -> int:
    from jqmaster.bundle.built import builtin
    from jqmaster.cluster.opening import Opened

    if options.redis is None and is_redis(os.environ.get("JQ_URL", "")):
        options.redis = os.environ["JQ_URL"]
    if options.redis is None:
        raise Misused(options.parser.prog, "--redis or JQ_REDIS is required")
    given, where = _redis_given(options), without_password(options.redis)

    async def load() -> tuple[str, Any]:
        place = Opened(options.redis, **given)
        try:
            version = await place.load(keep=options.keep)
            return version, await place.engine.redis.hget(f"{place.engine.namespace}:manifest", "library")
        finally:
            await place.close()

    try:
        version, library = asyncio.run(load())
    except (JQError, ValueError) as error:
        print(f"jqmaster: cannot use Redis at {where}: {error}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    for name, script in sorted(builtin().items()):
        print(f"{script.sha}  {name}")
    what = f"the scripts and of the functions {library.decode()}" if library else "the scripts"
    print(f"version {version} of {what} is in {where}, {given['namespace']}")
    return EXIT_OK


@command(
    f"""work
run a worker
MODULE:NAME names a JQ object, such as hello:jq, or a map of job names to
functions. It takes jobs from where the object does, from a master or Redis
(--url, --redis), or has them pushed (--push as well).

functions MODULE:NAME                     a JQ object, or a map of job names to functions
--queues NAMES $JQ_QUEUES                 with commas between (default: those of its jobs)
--concurrency N=8 $JQ_CONCURRENCY         jobs at a time
--register                                without --push: be listed, and hear requests to be quiet or stop
--push                                    listen, and have jobs pushed
--advertise URL $JQ_ADVERTISE             with --push: how masters reach it, where that is not --host and --port
--push-secrets SECRETS $JQ_PUSH_SECRETS   with --push: run what is signed with one of them (default: a random one)
--synchronous                             with --push: answer with the outcome itself
--host HOST=127.0.0.1 $JQ_WORKER_HOST     with --push: listen there
--port PORT=0 $JQ_WORKER_PORT             with --push: the port, 0 for any free one
--threads N(1..10000) $JQ_THREADS         of a JQ object: so many plain functions, beside --concurrency
--processes N(1..10000) $JQ_PROCESSES     of a JQ object: so many with process=True, beside --concurrency
--process-jobs N $JQ_PROCESS_JOBS         of a JQ object: a process makes room for a fresh one after so many jobs
--process-memory MB $JQ_PROCESS_MEMORY    of a JQ object: a process makes room for a fresh one when it holds more
--name NAME $JQ_WORKER_NAME               the worker's name (default: host, process and a random part)
--stop-timeout TIME=8s $JQ_STOP_TIMEOUT   how long running jobs have to finish
--log-format text|json $JQ_LOG_FORMAT     of the log, on stderr (default: as the program configured it, or text)
--reload                                  for development: start anew when a Python file below this folder changes
{_RECREATE}[where to ask]
{URL.replace("http://…", "http://…, several with commas between")}{KEY}{REDIS}"""
)
def _work(options: Options) -> int:
    if not options.reload:
        return _run_worker(options)
    from jqmaster.cli import reloading

    return reloading.run(lambda change: _run_worker(options, change))


def _run_worker(options: Options, until: Any = None) -> int:
    from jqmaster.engine.secret import key_of
    from jqmaster.worker import joblog

    with brought_by("worker", "work"):
        from jqmaster.worker.run import WorkOptions, run

    prog = options.parser.prog
    if options.synchronous and not options.push:
        raise Misused(prog, "--synchronous goes with --push")
    url = url_of(options)
    jobs = _jobs(options.functions, prog)
    joblog.configure(options.log_format, verbose=options.verbose)
    same = ("push", "register", "recreate", "synchronous", "queues", "concurrency", "host", "port", "name", "advertise")
    given: dict[str, Any] = {name: getattr(options, name) for name in same}
    given |= _redis_given(options) | {"drain_timeout_s": options.stop_timeout, "until": until}
    given["push_secrets"] = options.push_secrets or ()
    given["redis_url"] = url if url and is_redis(url) else None
    given["masters"] = url.split(",") if url and not is_redis(url) else []
    key_file = said_key_file(options)
    given["key"] = key_of(file=key_file) if key_file else None
    if isinstance(jobs, dict):
        if not url:
            raise Misused(prog, "give either --url or --redis")
        return run(WorkOptions(functions=jobs, **given), ends_process=until is None)
    memory = options.process_memory and options.process_memory << 20
    asks_redis = is_redis(url) if url else jobs.target.is_redis
    given["namespace"] = options.namespace if asks_redis else said_namespace(options)
    try:
        more = {name: getattr(options, name) for name in ("threads", "processes", "process_jobs")}
        chosen = jobs.worker(**given, **more, process_memory=memory).options()
    except ValueError as error:
        raise Misused(prog, f"{options.functions}: {error}") from None
    return run(chosen, ends_process=until is None)


def _jobs(where: str, prog: str) -> Any:
    """The JQ object, or the map of functions, that the command line names."""
    from jqmaster.client.app import JQ

    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, attribute or ("jq" if hasattr(module, "jq") else "FUNCTIONS"))
    except (ImportError, AttributeError, ValueError) as error:
        raise Misused(prog, f"{where}: {error}") from None
    if isinstance(found, JQ):
        return found
    if not isinstance(found, dict) or not found or not all(callable(one) for one in found.values()):
        raise Misused(prog, f"{where}: expected a JQ object, or a map of job names to functions")
    return found


@command(
    f"""demo
show it all working, in under a minute

--jobs N=3000  about so many
{FORM}"""
)
def _demo(options: Options) -> int:
    with brought_by("server", "demo"):  # whose master is a process of its own
        import jqmaster.server.server  # noqa: F401
    from jqmaster.demo import run

    return run(options.jobs, options.form or "auto")


@command("""version
print the versions of the package and of the scripts
""")
def _version(_options: Options) -> int:
    from jqmaster.cli.version import version_line

    print(version_line())
    return EXIT_OK
