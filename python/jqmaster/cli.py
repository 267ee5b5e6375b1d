"""The command line: `jqmaster serve | load | export | import | work | demo | version`."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_REDIS = 0, 1, 2, 3

EPILOG = """\
Every option that names a JQ_ variable can be given by it in the environment; the command line wins.
Exit codes: 0 all well, 1 failed, 2 wrong usage, 3 Redis cannot be used, 4 cannot listen.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the process's exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    level = logging.DEBUG if options.verbose else logging.WARNING
    logging.basicConfig(
        level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    try:
        return int(options.run(options, parser))
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jqmaster", description="JQ, a job queue on Redis.", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("-v", "--verbose", action="store_true", help="log more, to stderr")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_load(commands)
    _add_copying(commands)
    _add_work(commands)
    demo = commands.add_parser("demo", help="show it all working, in under a minute")
    demo.add_argument(
        "--jobs", type=_positive, default=3000, help="about how many jobs (default: %(default)s)"
    )
    demo.set_defaults(run=_demo)
    version = commands.add_parser("version", help="print the versions of the package and of the scripts")
    version.set_defaults(run=_version)
    return parser


def _option(
    parser: Any, flag: str, variable: str, text: str, *, default: Any = None, kind: Any = str
) -> None:
    """An option that the environment may give as well; a bad value there is refused like one on the command
    line."""
    given = os.environ.get(variable)
    shown = f" (default: {default})" if default not in (None, "") else ""
    metavar = flag.strip("-").replace("-", "_").upper()
    parser.add_argument(
        flag, default=default if given is None else given, type=kind, metavar=metavar,
        help=f"{text}{shown} [{variable}]",
    )  # fmt: skip


def _redis_options(parser: Any) -> None:
    _option(parser, "--redis", "JQ_REDIS", "URL of Redis: redis://, rediss:// or unix://")
    _option(parser, "--namespace", "JQ_NAMESPACE", "namespace, in braces", default="{jq}", kind=_namespace)


def _add_serve(commands: Any) -> None:
    parser = commands.add_parser(
        "serve", help="run a JQ master",
        description="Run a JQ master. Without --redis it starts its own Redis, with data in --data-dir.",
    )  # fmt: skip
    _redis_options(parser)
    _option(parser, "--host", "JQ_HOST", "address to listen on", default="127.0.0.1")
    _option(parser, "--port", "JQ_PORT", "port to listen on, 0 for any free one", default=8400, kind=_port)
    _option(parser, "--unix", "JQ_UNIX", "listen on this unix socket instead")
    _option(
        parser, "--data-dir", "JQ_DATA_DIR", "where an own Redis keeps its data", default="var", kind=Path
    )
    _option(
        parser, "--stop-timeout", "JQ_STOP_TIMEOUT", "seconds a stop may take", default=10.0, kind=_seconds
    )
    _add_migrate(parser)
    parser.set_defaults(run=_serve)


def _add_load(commands: Any) -> None:
    parser = commands.add_parser("load", help="load the scripts into Redis and set the namespace up")
    _redis_options(parser)
    _add_migrate(parser)
    parser.set_defaults(run=_load)


def _add_migrate(parser: Any) -> None:
    parser.add_argument(
        "--migrate", action="store_true",
        help="bring data of the schema before up to this one; older scripts refuse it from then on",
    )  # fmt: skip


def _add_copying(commands: Any) -> None:
    for name, text, run in (
        ("export", "write all that a namespace has into a file", _export),
        ("import", "read such a file into a namespace that is not set up", _import),
    ):
        parser = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        _redis_options(parser)
        parser.add_argument("file", metavar="FILE", type=Path)
        parser.set_defaults(run=run)


def _add_work(commands: Any) -> None:
    parser = commands.add_parser(
        "work", help="run a worker",
        description="Run a worker. MODULE:NAME names a JQ object, such as hello:jq, or a map of job names to "
        "functions. It takes jobs from where the object does, from a master (--master), from Redis itself "
        "(--redis), or has them pushed (--push as well).",
    )  # fmt: skip
    parser.add_argument(
        "functions", metavar="MODULE:NAME", help="a JQ object, or a map of job names to functions"
    )
    _option(parser, "--master", "JQ_MASTER", "URL of a JQ master; several with commas between")
    _redis_options(parser)
    parser.add_argument("--push", action="store_true", help="listen, and have jobs pushed")
    parser.add_argument(
        "--register",
        action="store_true",
        help="without --push: be listed, and hear requests to be quiet or stop",
    )
    parser.add_argument(
        "--synchronous", action="store_true", help="with --push: answer with the outcome itself"
    )
    _option(parser, "--queues", "JQ_QUEUES", "queues, with commas between (default: those of its jobs)")
    _option(parser, "--concurrency", "JQ_CONCURRENCY", "jobs at a time", default=8, kind=_positive)
    _option(parser, "--host", "JQ_WORKER_HOST", "with --push: address to listen on", default="127.0.0.1")
    _option(
        parser, "--port", "JQ_WORKER_PORT", "with --push: port, 0 for any free one", default=0, kind=_port
    )
    _option(
        parser, "--name", "JQ_WORKER_NAME", "the worker's name (default: host, process and a random part)"
    )
    _option(parser, "--stop-timeout", "JQ_STOP_TIMEOUT", "seconds running jobs have to finish", default=10.0,
            kind=_seconds)  # fmt: skip
    parser.add_argument("--json-logs", action="store_true", help="log JSON objects, one a line")
    parser.set_defaults(run=_work)


# -- commands -------------------------------------------------------------------------------------
# Imports are inside, so that --help and version are quick and need none of the dependencies.


def _serve(options: argparse.Namespace, _parser: argparse.ArgumentParser) -> int:
    from jqmaster.server import ServeOptions, run

    return run(
        ServeOptions(
            redis_url=options.redis, namespace=options.namespace, host=options.host, port=options.port,
            unix=options.unix, data_dir=options.data_dir, stop_timeout_s=options.stop_timeout,
            migrate=options.migrate,
        )
    )  # fmt: skip


def _load(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from jqmaster import scripts
    from jqmaster.engine import connect
    from jqmaster.errors import JQError, UnsuitableServer
    from jqmaster.server import without_password

    if options.redis is None:
        parser.error("load: --redis or JQ_REDIS is required")

    async def load() -> str:
        async with connect(options.redis) as client:
            return await scripts.load(client, options.namespace, migrate=options.migrate)

    try:
        version = asyncio.run(load())
    except (JQError, UnsuitableServer, ValueError) as error:
        print(f"jqmaster: {error}", file=sys.stderr)
        return EXIT_REDIS
    for name, script in sorted(scripts.builtin().items()):
        print(f"{script.sha}  {name}")
    print(f"version {version} of the scripts is in {without_password(options.redis)}, {options.namespace}")
    return EXIT_OK


def _export(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from jqmaster import copying
    from jqmaster.engine import Engine

    async def export(client: Any, file: Any) -> str:
        count = await copying.write_file(Engine(client, options.namespace), file)
        return f"{count} records of {options.namespace} are in {options.file}"

    return _copy(options, parser, "wb", export)


def _import(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from jqmaster import copying

    async def import_(client: Any, file: Any) -> str:
        count = await copying.import_records(client, options.namespace, copying.read_file(file))
        return f"{count} keys are in {options.namespace}"

    return _copy(options, parser, "rb", import_)


def _copy(
    options: argparse.Namespace,
    parser: argparse.ArgumentParser,
    mode: str,
    what: Callable[[Any, Any], Coroutine[Any, Any, str]],
) -> int:
    from jqmaster.engine import connect
    from jqmaster.errors import JQError, UnsuitableServer

    if options.redis is None:
        parser.error("--redis or JQ_REDIS is required")

    async def run(file: Any) -> str:
        async with connect(options.redis) as client:
            return await what(client, file)

    try:
        with open(options.file, mode) as file:
            print(asyncio.run(run(file)))
    except OSError as error:
        print(f"jqmaster: {error}", file=sys.stderr)
        return EXIT_FAILED
    except (JQError, UnsuitableServer, ValueError) as error:
        print(f"jqmaster: {error}", file=sys.stderr)
        return EXIT_REDIS
    return EXIT_OK


def _work(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    from jqmaster import joblog
    from jqmaster.worker_run import WorkOptions, run

    joblog.install(json_lines=options.json_logs)
    if options.synchronous and not options.push:
        parser.error("work: --synchronous goes with --push")
    if options.master is not None and options.redis is not None:
        parser.error("work: give --master or --redis, not both")
    jobs = _jobs(options.functions, parser)
    given = {
        "masters": options.master.split(",") if options.master else [], "redis_url": options.redis,
        "namespace": options.namespace, "push": options.push, "register": options.register,
        "synchronous": options.synchronous,
        "queues": options.queues.split(",") if options.queues else None, "concurrency": options.concurrency,
        "host": options.host, "port": options.port, "name": options.name,
        "drain_timeout_s": options.stop_timeout,
    }  # fmt: skip
    if not isinstance(jobs, dict):
        try:
            return int(jobs.worker(**given).run())
        except ValueError as error:
            parser.error(f"work: {options.functions}: {error}")
    if options.master is None and options.redis is None:
        parser.error("work: give either --master or --redis")
    return run(WorkOptions(functions=jobs, **given))


def _jobs(where: str, parser: argparse.ArgumentParser) -> Any:
    """The JQ object, or the map of functions, that the command line names."""
    from jqmaster.app import JQ

    module_name, _, attribute = where.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
        found = getattr(module, attribute or ("jq" if hasattr(module, "jq") else "FUNCTIONS"))
    except (ImportError, AttributeError) as error:
        parser.error(f"work: {where}: {error}")
    if isinstance(found, JQ):
        return found
    if not isinstance(found, dict) or not found or not all(callable(one) for one in found.values()):
        parser.error(f"work: {where}: expected a JQ object, or a map of job names to functions")
    return found


def _demo(options: argparse.Namespace, _parser: argparse.ArgumentParser) -> int:
    from jqmaster.demo import main as demo

    return demo(["--jobs", str(options.jobs)])


def _version(_options: argparse.Namespace, _parser: argparse.ArgumentParser) -> int:
    from jqmaster import __version__, luabuild, scripts

    print(f"jqmaster {__version__}, scripts {luabuild.version_of(scripts.builtin())}")
    return EXIT_OK


# -- values ---------------------------------------------------------------------------------------


def _namespace(text: str) -> str:
    from jqmaster.scripts import check_namespace

    try:
        return check_namespace(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, got {text!r}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0, got {text!r}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
