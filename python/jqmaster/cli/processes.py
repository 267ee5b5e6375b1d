"""`serve`, `work`, `load`, `demo`, `version`: what runs, and what is loaded."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from jqmaster.cli.options import FORM_HELP, Parser, command, duration, form, namespace, port, positive, span, whole
from jqmaster.cli.status import EXIT_OK, EXIT_UNAVAILABLE
from jqmaster.connection.url import FORMS, is_redis, without_password

_WORK = """\
MODULE:NAME names a JQ object, such as hello:jq, or a map of job names to
functions. It takes jobs from where the object does, from a master (--master),
from Redis itself (--redis), or has them pushed (--push as well)."""
_SERVE = "Without --redis it starts its own Redis, with data in --data-dir."


def add(commands: Any) -> None:
    _add_serve(commands)
    _add_work(commands)
    parser = command(commands, "load", _load, "load the scripts into Redis and set the namespace up")
    _redis_options(parser)
    _add_migrate(parser)
    parser.option(
        "--keep", variable="JQ_KEEP", type=positive, metavar="N",
        help="versions of the scripts that stay, this one included (default: as said last, or 2)",
    )  # fmt: skip
    demo = command(commands, "demo", _demo, "show it all working, in under a minute")
    demo.option("--jobs", type=positive, default=3000, metavar="N", help="about so many (default: %(default)s)")
    _form_option(demo)
    command(commands, "version", _version, "print the versions of the package and of the scripts")


def _redis_options(parser: Parser) -> None:
    parser.option("--redis", variable="JQ_REDIS", metavar="URL", help=f"Redis: {FORMS}")
    parser.option(
        "--namespace", variable="JQ_NAMESPACE", metavar="NAMESPACE", default="{jq}", type=namespace,
        help="in braces (default: %(default)s)",
    )  # fmt: skip
    _form_option(parser)


def _form_option(parser: Parser) -> None:
    parser.option("--form", variable="JQ_FORM", metavar="FORM", default="auto", type=form, help=FORM_HELP)


def _add_migrate(parser: Parser) -> None:
    parser.option(
        "--migrate", action="store_true", variable="JQ_MIGRATE",
        help="bring data of an older schema up to this one; older scripts refuse it from then on",
    )  # fmt: skip


def _add_recreate(parser: Parser) -> None:
    parser.option(
        "--recreate", action="store_true", variable="JQ_RECREATE",
        help="set the namespace up again, empty, when it vanishes from Redis; else stop until it is back",
    )  # fmt: skip


def _add_serve(commands: Any) -> None:
    parser = command(commands, "serve", _serve, "run a JQ master", _SERVE)
    _redis_options(parser)
    parser.option("--host", variable="JQ_HOST", default="127.0.0.1", help="listen there (default: %(default)s)")
    parser.option(
        "--port",
        variable="JQ_PORT",
        default=8400,
        type=port,
        help="0 for any free one (default: %(default)s)",
    )
    parser.option("--unix", variable="JQ_UNIX", metavar="PATH", help="listen on this unix socket instead")
    parser.option(
        "--allowed-hosts", variable="JQ_ALLOWED_HOSTS", metavar="NAMES",
        help="more names that browsers may ask it by, with commas between; * for any",
    )  # fmt: skip
    parser.option(
        "--data-dir", variable="JQ_DATA_DIR", default=Path("var"), type=Path, metavar="DIR",
        help="where an own Redis keeps its data (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--max-memory", variable="JQ_MAX_MEMORY", type=whole(0, 1 << 30), metavar="MB",
        help="what an own Redis may take for its data; 0 for any (default: half of what is free when it starts)",
    )  # fmt: skip
    parser.option(
        "--stop-timeout", variable="JQ_STOP_TIMEOUT", default=10.0, type=span, metavar="TIME",
        help="how long a stop may take (default: 10 s)",
    )  # fmt: skip
    parser.option("--access-log", action="store_true", help="log a line for each request and each delivery")
    parser.option(
        "--log-format", variable="JQ_LOG_FORMAT", choices=("text", "json"), default="text",
        help="of the log, on stderr: text or json (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--metrics-queues", variable="JQ_METRICS_QUEUES", type=_shown_queues, default=100, metavar="N",
        help="queues that /metrics shows one by one, at most 1000 (default: %(default)s)",
    )  # fmt: skip
    _add_migrate(parser)
    _add_recreate(parser)


def _add_work(commands: Any) -> None:
    parser = command(commands, "work", _work, "run a worker", _WORK)
    parser.add_argument("functions", metavar="MODULE:NAME", help="a JQ object, or a map of job names to functions")
    parser.option("--master", variable="JQ_MASTER", metavar="URL", help="a JQ master; several with commas between")
    _redis_options(parser)
    parser.option("--push", action="store_true", help="listen, and have jobs pushed")
    parser.option(
        "--register", action="store_true",
        help="without --push: be listed, and hear requests to be quiet or stop",
    )  # fmt: skip
    parser.option("--synchronous", action="store_true", help="with --push: answer with the outcome itself")
    parser.option(
        "--queues",
        variable="JQ_QUEUES",
        metavar="NAMES",
        help="with commas between (default: those of its jobs)",
    )
    parser.option(
        "--concurrency", variable="JQ_CONCURRENCY", default=8, type=positive, metavar="N",
        help="jobs at a time (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--process-jobs", variable="JQ_PROCESS_JOBS", type=positive, metavar="N",
        help="of a JQ object: a process makes room for a fresh one after so many jobs",
    )  # fmt: skip
    parser.option(
        "--process-memory", variable="JQ_PROCESS_MEMORY", type=positive, metavar="MB",
        help="of a JQ object: a process makes room for a fresh one when it holds more",
    )  # fmt: skip
    parser.option(
        "--host", variable="JQ_WORKER_HOST", default="127.0.0.1",
        help="with --push: listen there (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--port", variable="JQ_WORKER_PORT", default=0, type=port,
        help="with --push: the port, 0 for any free one (default: %(default)s)",
    )  # fmt: skip
    parser.option(
        "--name", variable="JQ_WORKER_NAME",
        help="the worker's name (default: host, process and a random part)",
    )  # fmt: skip
    parser.option(
        "--stop-timeout", variable="JQ_STOP_TIMEOUT", default=10.0, type=duration, metavar="TIME",
        help="how long running jobs have to finish (default: 10 s)",
    )  # fmt: skip
    _add_recreate(parser)
    parser.option("--json-logs", action="store_true", help="log JSON objects, one a line")


def _serve(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.master.server import ServeOptions, run

    return run(
        ServeOptions(
            redis_url=options.redis, namespace=options.namespace, form=options.form,
            host=options.host, port=options.port,
            unix=options.unix, data_dir=options.data_dir, stop_timeout_s=options.stop_timeout,
            max_memory=None if options.max_memory is None else options.max_memory << 20,
            migrate=options.migrate, recreate=options.recreate,
            access_log=options.access_log, log_format=options.log_format,
            metrics_queues=options.metrics_queues,
            allowed_hosts=options.allowed_hosts.split(",") if options.allowed_hosts else (),
        )
    )  # fmt: skip


def _shown_queues(text: str) -> int:
    if positive(text) > 1000:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 to 1000, got {text!r}")
    return int(text)


def _load(options: argparse.Namespace, parser: Parser) -> int:
    from jqmaster.engine import scripts
    from jqmaster.engine.engine import connect
    from jqmaster.errors import JQError, UnsuitableServer

    if options.redis is None and is_redis(os.environ.get("JQ_URL", "")):
        options.redis = os.environ["JQ_URL"]
    if options.redis is None:
        parser.error("--redis or JQ_REDIS is required")

    async def load() -> tuple[str, Any]:
        async with connect(options.redis) as client:
            version = await scripts.load(
                client, options.namespace, migrate=options.migrate, form=options.form, keep=options.keep
            )
            return version, await client.hget(f"{options.namespace}:manifest", "library")

    try:
        version, library = asyncio.run(load())
    except (JQError, UnsuitableServer, ValueError) as error:
        where = without_password(options.redis)
        print(f"jqmaster: cannot use Redis at {where}: {error}", file=sys.stderr)
        return EXIT_UNAVAILABLE
    for name, script in sorted(scripts.builtin().items()):
        print(f"{script.sha}  {name}")
    what = f"the scripts and of the functions {library.decode()}" if library else "the scripts"
    print(f"version {version} of {what} is in {without_password(options.redis)}, {options.namespace}")
    return EXIT_OK


def _work(options: argparse.Namespace, parser: Parser) -> int:
    from jqmaster.worker import joblog
    from jqmaster.worker.run import WorkOptions, run

    joblog.install(json_lines=options.json_logs)
    if options.synchronous and not options.push:
        parser.error("--synchronous goes with --push")
    if options.master is not None and options.redis is not None:
        parser.error("give --master or --redis, not both")
    jobs = _jobs(options.functions, parser)
    given = {
        "masters": options.master.split(",") if options.master else [], "redis_url": options.redis,
        "namespace": options.namespace, "form": options.form, "push": options.push,
        "register": options.register, "recreate": options.recreate,
        "synchronous": options.synchronous,
        "queues": options.queues.split(",") if options.queues else None, "concurrency": options.concurrency,
        "host": options.host, "port": options.port, "name": options.name,
        "drain_timeout_s": options.stop_timeout,
    }  # fmt: skip
    if not isinstance(jobs, dict):
        try:
            chosen = jobs.worker(
                **given,
                process_jobs=options.process_jobs,
                process_memory=options.process_memory and options.process_memory << 20,
            ).options()
        except ValueError as error:
            parser.error(f"{options.functions}: {error}")
        return run(chosen)
    if options.master is None and options.redis is None:
        parser.error("give either --master or --redis")
    return run(WorkOptions(functions=jobs, **given))


def _jobs(where: str, parser: Parser) -> Any:
    """The JQ object, or the map of functions, that the command line names."""
    from jqmaster.app.app import JQ

    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, attribute or ("jq" if hasattr(module, "jq") else "FUNCTIONS"))
    except (ImportError, AttributeError, ValueError) as error:
        parser.error(f"{where}: {error}")
    if isinstance(found, JQ):
        return found
    if not isinstance(found, dict) or not found or not all(callable(one) for one in found.values()):
        parser.error(f"{where}: expected a JQ object, or a map of job names to functions")
    return found


def _demo(options: argparse.Namespace, _parser: Parser) -> int:
    from jqmaster.demo import main as demo

    return demo(["--jobs", str(options.jobs), "--form", options.form])


def version_line() -> str:
    """The version, and the forms that there are of it."""
    from jqmaster.bundle import build as luabuild
    from jqmaster.engine import scripts

    built = scripts.builtin()
    functions = f", functions {built.library.name}" if built.library else ""
    return f"jqmaster {luabuild.version_of(built)} (scripts{functions})"


def _version(_options: argparse.Namespace, _parser: Parser) -> int:
    print(version_line())
    return EXIT_OK
