"""A JQ server as a process: its Redis, its parts, the HTTP server, and a stop that loses nothing."""

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

import hypercorn.asyncio
from redis.exceptions import RedisError

from jqmaster import __version__
from jqmaster.cluster.cluster import open_engine
from jqmaster.connection.url import without_password
from jqmaster.connection.wake import end
from jqmaster.engine.ended import Ended
from jqmaster.engine.engine import Engine
from jqmaster.engine.waiting import Waiting
from jqmaster.errors import JQError
from jqmaster.server import logs
from jqmaster.server.dispatch import Dispatch
from jqmaster.server.egress import Egress, address_of
from jqmaster.server.embedded import StartError, embedded_redis, gone
from jqmaster.server.http import http1
from jqmaster.server.http.app import App
from jqmaster.server.keyring import Keyring
from jqmaster.server.loop import Loop
from jqmaster.server.master import Color, Master, Networks
from jqmaster.server.meters import Meters
from jqmaster.server.sender import Sender
from jqmaster.server.sockets import bind_tcp
from jqmaster.server.webhooks import Webhooks

log = logging.getLogger("jqmaster.server")


@dataclass
class ServeOptions:
    """What `jqmaster serve` can be told. Without `redis_url` an own Redis keeps its data in `data_dir`."""

    redis_url: str | None = None
    namespace: str = "{jq}"
    host: str = "127.0.0.1"
    port: int = 8400  # 0: any free one
    data_dir: Path = field(default_factory=lambda: Path("var"))
    max_memory: int | None = None  # of an own Redis, in bytes; 0: any. None: half of what is available
    stop_timeout_s: float = 10.0
    recreate: bool = False  # set a namespace up again that has vanished
    access_log: bool = False  # a line for each request
    allowed_hosts: Collection[str] = ()  # names to be asked by; "*": any
    root_path: str = ""  # under which a proxy serves it, such as /jq
    trusted_proxies: Networks = ()  # who say who a user is
    tls_cert: Path | None = None  # PEM files; with them it is HTTPS
    tls_key: Path | None = None
    push_to: Egress | None = None  # where workers may be that are pushed to
    environment: str = ""  # what the web UI calls all this
    environment_color: Color = "grey"
    insecure: bool = False  # others than this host may ask, although the namespace has no keys

    @property
    def is_local(self) -> bool:
        """Whether nobody but this host can ask."""
        address = address_of(self.host)
        return self.host == "localhost" or (address is not None and address.is_loopback)

    def hosts(self) -> frozenset[str] | None:
        """The names to be asked by, beside addresses and localhost. None: any, as when it listens to the
        network without having been told its names."""
        if "*" in self.allowed_hosts or not (self.allowed_hosts or self.is_local):
            return None
        return frozenset(name.lower() for name in self.allowed_hosts)

    def egress(self) -> Egress:
        """Where it may push. Who can register a worker chooses where: so nowhere, until it is said, when others
        than this machine can."""
        return self.push_to or (Egress() if self.is_local else Egress(""))


class Server:
    """`async with` it has Redis, loads the scripts, listens and starts all parts, or raises StartError with nothing
    left running. Within, `url` and `redis_url` are known, and `http` ends by itself only where it fails. `embedded`: an
    own Redis, if there is one, to be closed alone by who exits at once."""

    def __init__(self, options: ServeOptions) -> None:
        self.options = options
        self.url = ""
        self.redis_url = options.redis_url or ""
        self.master: Master
        self.app: App
        self.senders: list[Sender]
        self.http: asyncio.Task[None]
        self.embedded = contextlib.ExitStack()
        self._parts = contextlib.AsyncExitStack()  # what was started, and how each is stopped
        self._stop_by = 0.0

    async def __aenter__(self) -> Server:
        async with self._parts as parts:
            await self._start()
            self._parts = parts.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Stop within about `stop_timeout_s`: no new work, long polls answered at once, deliveries under way
        finished, then the HTTP server, and last an own Redis."""
        self._stop_by = asyncio.get_running_loop().time() + self.options.stop_timeout_s
        await self._parts.aclose()

    def _left_s(self, least_s: float) -> float:
        """How long a part may take to stop, as others come after it."""
        return max(least_s, (self._stop_by - asyncio.get_running_loop().time()) * 0.6)

    # -- parts ------------------------------------------------------------------------------------

    async def _start(self) -> None:
        options = self.options
        listening = self._listen()  # before anything else: an address in use is the most common mistake
        if not self.redis_url:
            own = embedded_redis(options.data_dir, max_memory=options.max_memory)
            self._parts.push_async_callback(asyncio.to_thread, self.embedded.close)
            self.redis_url = await asyncio.to_thread(self.embedded.enter_context, own)
        try:
            engine = open_engine(self.redis_url, options.namespace, recreate=options.recreate)
            self._parts.push_async_callback(engine.close)
            await engine.load()
            keyring = await self._keys(engine)
        except (JQError, RedisError, ValueError) as error:
            raise StartError(f"cannot use Redis at {without_password(self.redis_url)}: {error}") from None
        waiting, ended = Waiting(*engine.engines), Ended(engine)
        self._parts.push_async_callback(waiting.stop)
        self._parts.push_async_callback(ended.stop)
        meters, egress = Meters(), options.egress()
        name = f"{socket.gethostname()}:{os.getpid()}"
        self.senders = [Dispatch(part, name, egress, meters, keyring) for part in engine.engines]
        self.senders.append(Webhooks(engine, name, egress, meters, waiting))
        self.master = Master(
            engine, waiting, ended, keyring, proxies=options.trusted_proxies, meters=meters,
            redis=without_password(self.redis_url), environment=options.environment, color=options.environment_color,
        )  # fmt: skip
        self._serve_http(listening)
        # The HTTP server still answers meanwhile: outcomes of running jobs are welcome to the end.
        self._parts.push_async_callback(self._stop_work)
        for sender in self.senders:
            sender.start()

    async def _stop_work(self) -> None:
        self.master.draining.set()
        self.master.waiting.drain()
        self.master.ended.drain()
        most_s = self._left_s(0.1)
        await asyncio.gather(*(sender.stop(most_s) for sender in self.senders))

    async def _keys(self, engine: Engine) -> Keyring:
        """The namespace's keys. Raises JQError, and StartError where others than this host may ask, and there are
        none."""
        options = self.options
        keyring = Keyring(engine, required=bool(options.trusted_proxies))
        await keyring.look()
        if not (keyring.is_required or options.is_local):
            if not options.insecure:
                raise StartError(
                    f"on {options.host} others than this host can ask, and {options.namespace} has no keys. Create "
                    "one: jqmaster keys create NAME --role admin --redis URL; or serve --insecure lets everybody do "
                    "everything",
                    code=1,
                )
            log.warning("--insecure: whoever reaches %s may do everything, as there are no keys", self.url)
        return keyring

    def _listen(self) -> socket.socket:
        options = self.options
        cannot = f"cannot listen on {options.host}:{options.port}"
        try:
            listening, self.url = bind_tcp(options.host, options.port, "https" if options.tls_cert else "http")
            self._parts.callback(listening.close)
            if options.tls_cert:
                cannot = f"no certificate with its key in {options.tls_cert} {options.tls_key or ''}"
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(options.tls_cert, options.tls_key)
        except OSError as error:
            raise StartError(f"{cannot}: {error.strerror or error}", code=1) from None
        return listening

    def _serve_http(self, listening: socket.socket) -> None:
        options = self.options
        config = http1.config(listening.detach(), options.tls_cert, options.tls_key)
        app = self.app = App(self.master, hosts=options.hosts(), root_path=options.root_path.rstrip("/"))
        shutdown = asyncio.Event()
        serving = hypercorn.asyncio.serve(app, config, shutdown_trigger=shutdown.wait)
        http = self.http = asyncio.create_task(serving, name="http server")

        async def stop() -> None:
            shutdown.set()
            timeout_s = config.graceful_timeout = self._left_s(0.2)
            app.hurry(timeout_s / 3)
            await asyncio.wait({http}, timeout=timeout_s + 1)
            await end((http,), 1.0)

        self._parts.push_async_callback(stop)


def run(options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code. A second signal exits at once."""
    # Commands keep this quiet, as they say themselves what went wrong; a server's log is the place for it.
    logging.getLogger("jqmaster.http").setLevel(logging.NOTSET)
    if options.access_log:
        logs.request_log.setLevel(logging.INFO)
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
            server.embedded.close()
            os._exit(128 + number)
        logs.say(log, "stopping; a second signal ends it at once")
        stopping.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, on_signal, number)
    try:
        async with server:
            own = " (own)" if options.redis_url is None else ""
            logs.say(log, f"JQ server {__version__} listens on {server.url}")
            logs.say(log, f"Redis {without_password(server.redis_url)}{own}, namespace {options.namespace}")
            ends = [server.http, asyncio.create_task(stopping.wait())]
            ends += [asyncio.create_task(gone(server.redis_url))] if own else []
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            has_http = not server.http.done()
    except StartError as error:
        logs.say(log, str(error), is_error=True)
        return error.code
    if stopping.is_set():
        return 0
    why = f"its Redis has ended; see {options.data_dir}/redis.log" if has_http else "the HTTP server ended by itself"
    logs.say(log, why, is_error=True)
    return 4 if has_http else 1
