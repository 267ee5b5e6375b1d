"""A JQ master as a process: its Redis, its parts, the HTTP server, and a stop that loses nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import signal
import socket
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypercorn.asyncio
import hypercorn.config
from redis.exceptions import RedisError

from jqmaster import __version__
from jqmaster.cluster.opening import Opened
from jqmaster.connection.url import without_password
from jqmaster.connection.wake import end
from jqmaster.engine import scripts
from jqmaster.engine.engine import Engine
from jqmaster.engine.scripts import Form
from jqmaster.errors import JQError, UnsuitableServer
from jqmaster.server import logs
from jqmaster.server.dispatch import Dispatch
from jqmaster.server.egress import Egress
from jqmaster.server.embedded import EmbeddedRedis, EmbeddedRedisError
from jqmaster.server.http import http1
from jqmaster.server.http.app import App
from jqmaster.server.keyring import Keyring
from jqmaster.server.loop import Loop
from jqmaster.server.master import Color, Master
from jqmaster.server.meters import Meters
from jqmaster.server.origin import is_loopback
from jqmaster.server.session import IDLE_S, NO_PROXIES, Proxies
from jqmaster.server.sockets import bind_tcp, bind_unix
from jqmaster.server.webhooks import Webhooks

log = logging.getLogger("jqmaster.server")

DEFAULT_PORT = 8400

EXIT_OK, EXIT_FAILED, EXIT_REDIS, EXIT_LISTEN = 0, 1, 4, 1  # as docs/cli.md has them


class StartError(Exception):
    """The master cannot start; the message says why. `code` is the process's exit code."""

    def __init__(self, message: str, code: int = EXIT_FAILED) -> None:
        super().__init__(message)
        self.code = code


@dataclass
class ServeOptions:
    """What `jqmaster serve` can be told. Without `redis_url` an own Redis keeps its data in `data_dir`."""

    redis_url: str | None = None
    namespace: str = "{jq}"
    form: Form = "auto"
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: any free one
    unix: str | None = None  # a socket's path, instead of host and port
    data_dir: Path = field(default_factory=lambda: Path("var"))
    max_memory: int | None = None  # of an own Redis, in bytes; 0: any. None: half of what is available
    stop_timeout_s: float = 10.0
    max_deliveries: int = 1000
    recreate: bool = False  # set a namespace up again that has vanished
    access_log: bool = False  # a line for each request and delivery
    metrics_queues: int = 100  # shown one by one in /metrics
    allowed_hosts: Collection[str] = ()  # names to be asked by; "*": any
    root_path: str = ""  # under which a proxy serves it, such as /jq
    proxies: Proxies = NO_PROXIES  # who say who a user is
    session_idle_s: float = IDLE_S
    tls_cert: Path | None = None  # PEM files; with them it is HTTPS
    tls_key: Path | None = None
    push_to: Egress | None = None  # where workers may be that are pushed to
    environment: str = ""  # what the web UI calls all this
    environment_color: Color = "grey"
    insecure: bool = False  # others than this host may ask, although the namespace has no keys

    @property
    def is_local(self) -> bool:
        """Whether nobody but this host can ask."""
        return bool(self.unix) or is_loopback(self.host)

    def hosts(self) -> Collection[str] | None:
        """The names to be asked by, beside addresses and localhost. None: any, as when the master listens to
        the network without having been told its names."""
        is_local = not self.unix and self.is_local
        if "*" in self.allowed_hosts or not (self.allowed_hosts or is_local):
            return None
        return frozenset(name.lower() for name in self.allowed_hosts)

    def egress(self) -> Egress:
        """Where it may push. Who can register a worker chooses where: so nowhere, until it is said, when others
        than this machine can."""
        return self.push_to or (Egress() if self.is_local else Egress(()))


class Server:
    """One master. `start`, then `stop`; `url` and `redis_url` are known in between."""

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self.url = ""
        self.redis_url = ""
        self.master: Master
        self.app: App
        self.dispatch: Dispatch
        self.webhooks: Webhooks
        self._embedded: EmbeddedRedis | None = None
        self._shutdown = asyncio.Event()
        self._http: asyncio.Task[None] | None = None
        self._socket: socket.socket | None = None
        self._config: hypercorn.config.Config
        self._parts = contextlib.AsyncExitStack()  # what was started, and how each is stopped
        self._stop_by = 0.0

    async def start(self) -> None:
        """Have Redis, load the scripts, start all parts and listen. Raises StartError, with nothing left
        running."""
        try:
            await self._start()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop within about `stop_timeout_s`: no new work, long polls answered at once, deliveries under way
        finished, then the HTTP server, and last an own Redis."""
        self._stop_by = asyncio.get_running_loop().time() + self.options.stop_timeout_s
        await self._parts.aclose()

    def _left_s(self, least_s: float, share: float = 1.0) -> float:
        return max(least_s, (self._stop_by - asyncio.get_running_loop().time()) * share)

    def abandon(self) -> None:
        """For an exit at once: only sees to it that an own Redis does not stay behind."""
        if self._embedded is not None:
            self._embedded.stop(1.0)

    async def failed(self) -> None:
        """Return when the HTTP server has ended without being told to."""
        assert self._http is not None
        await asyncio.wait({self._http})

    async def __aenter__(self) -> Server:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # -- parts ------------------------------------------------------------------------------------

    async def _start(self) -> None:
        options = self.options
        try:
            scripts.check_namespace(options.namespace)
        except ValueError as error:
            raise StartError(str(error)) from None
        self._listen()
        self.redis_url = options.redis_url or await self._own_redis()
        here = Opened(self.redis_url, options.namespace, form=options.form, recreate=options.recreate)
        self._parts.push_async_callback(self._close, here)
        try:
            await here.load()
            keyring = await self._keys(here.engine)
        except UnsuitableServer as error:
            raise StartError(str(error), EXIT_REDIS) from None
        except (JQError, RedisError, ValueError) as error:
            raise StartError(f"cannot use Redis at {without_password(self.redis_url)}: {error}", EXIT_REDIS) from None
        waiting, ended = here.waiting(), here.ended()
        self._parts.push_async_callback(waiting.stop)
        self._parts.push_async_callback(ended.stop)
        engine, meters, egress = here.engine, Meters(), options.egress()
        name = f"{socket.gethostname()}:{os.getpid()}"
        self.dispatch = here.each(
            lambda partition: Dispatch(
                partition, master=name, egress=egress, keyring=keyring,
                max_deliveries=here.share(options.max_deliveries), meters=meters,
            )
        )  # fmt: skip
        self.webhooks = Webhooks(engine, waiting, master=name, egress=egress, meters=meters)
        self.master = Master(
            engine, waiting, ended, self.dispatch,
            keyring=keyring, proxies=options.proxies, session_idle_s=options.session_idle_s,
            meters=meters, metrics_queues=options.metrics_queues,
            redis=without_password(self.redis_url), environment=options.environment, color=options.environment_color,
        )  # fmt: skip
        self.master.enqueuing = here.enqueuing()
        self._parts.push_async_callback(self._stop_http)
        # The HTTP server still answers meanwhile: outcomes of running jobs are welcome to the end.
        self._parts.push_async_callback(self._stop_work)
        self.dispatch.start()
        self.webhooks.start()
        self._serve_http()

    async def _stop_work(self) -> None:
        master = self.master
        master.draining.set()
        master.waiting.drain()
        master.ended.drain()
        most_s = self._left_s(0.1, 0.6)
        await asyncio.gather(self.dispatch.stop(most_s), self.webhooks.stop(most_s))

    async def _close(self, here: Opened) -> None:
        with contextlib.suppress(Exception):
            await here.close()

    async def _own_redis(self) -> str:
        """Start one; its URL."""
        self._embedded = EmbeddedRedis(self.options.data_dir, max_memory=self.options.max_memory)
        self._parts.push_async_callback(self._stop_redis, self._embedded)
        try:
            return await asyncio.to_thread(self._embedded.start)
        except EmbeddedRedisError as error:
            raise StartError(str(error), EXIT_REDIS) from None

    async def _stop_redis(self, embedded: EmbeddedRedis) -> None:
        await asyncio.to_thread(embedded.stop, self._left_s(1.0))
        self._embedded = None

    async def _keys(self, engine: Engine) -> Keyring:
        """The namespace's keys. Raises JQError, and StartError where others than this host may ask, and there are
        none."""
        options = self.options
        required = bool(options.proxies.networks) or not (options.is_local or options.insecure)
        keyring = Keyring(engine, required=required)
        await keyring.look()
        if keyring.count or options.is_local or options.proxies.networks:
            return keyring
        if not options.insecure:
            raise StartError(
                f"on {options.host} others than this host can ask, and {options.namespace} has no keys. Create one: "
                "jqmaster keys create NAME --role admin --redis URL; or serve --insecure lets everybody do everything"
            )
        log.warning("--insecure: whoever reaches %s may do everything, as there are no keys", self.url)
        return keyring

    def _listen(self) -> None:
        """Bind before anything else: an address in use is the most common mistake, and costs nothing to
        find."""
        options = self.options
        self._parts.callback(self._unlisten)
        try:
            if options.unix:
                self._socket = bind_unix(Path(options.unix))
                self.url = f"unix:{options.unix}"
            else:
                scheme = "http" if options.tls_cert is None else "https"
                self._socket, self.url = bind_tcp(options.host, options.port, scheme)
            self._socket.listen(http1.BACKLOG)
        except OSError as error:
            where = options.unix or f"{options.host}:{options.port}"
            raise StartError(f"cannot listen on {where}: {error.strerror or error}", EXIT_LISTEN) from None
        if options.tls_cert is not None:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(*self._tls_files())
            except (OSError, ssl.SSLError) as error:
                files = " and ".join(dict.fromkeys(self._tls_files()))
                raise StartError(f"no certificate with its key in {files}: {error.strerror or error}") from None

    def _unlisten(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self.options.unix and self.url:
            with contextlib.suppress(OSError):
                os.unlink(self.options.unix)

    def _tls_files(self) -> tuple[str, str]:
        options = self.options
        return str(options.tls_cert), str(options.tls_key or options.tls_cert)

    def _serve_http(self) -> None:
        assert self._socket is not None
        config = self._config = http1.config(self._socket.detach())
        self._socket = None
        if self.options.tls_cert is not None:
            config.certfile, config.keyfile = self._tls_files()
            config.alpn_protocols = ["http/1.1"]
        self.app = App(self.master, hosts=self.options.hosts(), root_path=self.options.root_path.rstrip("/"))
        app: Any = self.app
        serving = hypercorn.asyncio.serve(app, config, shutdown_trigger=self._shutdown.wait)
        self._http = asyncio.create_task(serving, name="http server")

    async def _stop_http(self) -> None:
        self._shutdown.set()
        if self._http is None:
            return
        timeout_s = self._config.graceful_timeout = self._left_s(0.2, 0.6)
        self.app.bounds.hurry(timeout_s / 2)
        await asyncio.wait({self._http}, timeout=timeout_s + 1)
        if not self._http.done():
            await end((self._http,), 1.0)


def run(options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code. A second signal exits at once."""
    # Commands keep this quiet, as they say themselves what went wrong; a server's log is the place for it.
    logging.getLogger("jqmaster.http").setLevel(logging.NOTSET)
    if options.access_log:
        for logger in (logs.request_log, logs.delivery_log):
            logger.setLevel(logging.INFO)
    most_files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):  # some systems say more than they give
        resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(_run(options))


async def _run(options: ServeOptions) -> int:
    server = Server(options)
    stopping = asyncio.Event()

    def on_signal(number: int) -> None:
        if stopping.is_set():
            server.abandon()
            os._exit(128 + number)
        logs.say(log, "stopping; a second signal ends it at once")
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    try:
        await server.start()
    except StartError as error:
        logs.say(log, str(error), is_error=True)
        return error.code
    own = " (own)" if options.redis_url is None else ""
    logs.say(log, f"JQ master {__version__} listens on {server.url}")
    logs.say(log, f"Redis {without_password(server.redis_url)}{own}, namespace {options.namespace}")
    waits = [asyncio.ensure_future(stopping.wait()), asyncio.ensure_future(server.failed())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    await server.stop()
    if not stopping.is_set():
        logs.say(log, "the HTTP server ended by itself", is_error=True)
        return EXIT_FAILED
    return EXIT_OK
