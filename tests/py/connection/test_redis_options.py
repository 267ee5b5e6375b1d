"""What a Redis URL says beside the address, and TLS to a real server."""

from __future__ import annotations

import asyncio
import gc
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from cli_support import Said, call  # noqa: F401 (fixture)
from jqmaster import JQ
from jqmaster.engine.engine import Engine, connect
from jqmaster.errors import Unavailable
from jqmaster.server.server import ServeOptions, Server, StartError
from parts import enqueue, eventually
from processes import MasterProcess, Process
from servers import RedisServer

APP = """
from jqmaster import JQ
jq = JQ({url!r}, namespace={namespace!r})

@jq.job(keep_result=True)
def double(number: int) -> int:
    return 2 * number
"""


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("nonsense=1", "the Redis URL has an unknown option: nonsense; there are: client_name, "),
        ("ssl_ca_certs={here}", "unknown option: ssl_ca_certs"),
        ("max_connections=x", "'max_connections'"),
    ],
)
async def test_what_a_url_cannot_mean_is_said_by_name_at_once(
    redis_url: str, query: str, said: str, call: object
) -> None:
    url = f"{redis_url}&{query.format(here=__file__)}"
    with pytest.raises(ValueError) as refused:
        connect(url)
    assert said in str(refused.value)
    told: Said = await asyncio.to_thread(call, "job", "--redis", url, "00000000000001")  # type: ignore[arg-type]
    assert told.code == 2 and said in told.err


@pytest.mark.parametrize("where", ["redis://h", "redis+cluster://h", "redis+sentinel://h/jobs"])
def test_how_long_connecting_may_take_is_what_the_url_says(where: str) -> None:
    assert connect(f"{where}?socket_connect_timeout=25").connect_s == 25
    assert connect(where).connect_s < 25


async def test_a_frozen_redis_is_waited_for_as_long_as_the_url_says(fresh_server: RedisServer) -> None:
    async with connect(fresh_server.url.replace("&socket_timeout=30", "&socket_timeout=1.5")) as redis:
        engine = Engine(redis)
        await enqueue(engine)
        assert fresh_server.process is not None
        fresh_server.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(Unavailable, match=r"redis.sock did not answer"):
            await enqueue(engine)
        assert time.monotonic() - began < 10
        fresh_server.process.send_signal(signal.SIGCONT)
        await enqueue(engine)


async def test_who_was_refused_does_not_come_in_as_another(fresh_server: RedisServer) -> None:
    async with connect(f"unix://jq:secret@{fresh_server.socket}") as redis:
        engine = Engine(redis)
        for _ in range(2):
            with pytest.raises(Unavailable, match="WRONGPASS"):
                await enqueue(engine)
        with fresh_server.client() as admin:
            admin.execute_command("ACL", "SETUSER", "jq", "on", ">secret", "~*", "&*", "+@all")
        await enqueue(engine)


async def test_a_sentinel_that_is_silent_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jqmaster.connection.topology.ANSWER_S", 600)
    over = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(b"*6\r\n+ip\r\n+10.0.0.1\r\n+port\r\n:7\r\n+config-epoch\r\n:3\r\n")
        await over.wait()
        writer.close()

    async def hang(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    servers = [await asyncio.start_server(serve, "127.0.0.1", 0) for serve in (hang, answer, answer)]
    hosts = ",".join("{}:{}".format(*server.sockets[0].getsockname()) for server in servers)
    assert await connect(f"redis+sentinel://{hosts}/jobs").finder.find() == ("10.0.0.1", 7)
    over.set()
    for server in servers:
        server.close()


async def test_who_stops_asking_sentinels_leaves_nothing_behind() -> None:
    over, unheard = asyncio.Event(), list[object]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unheard.append(context))
    asked: set[asyncio.Task[None] | None] = set()

    async def close_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        asked.add(asyncio.current_task())
        await over.wait()
        writer.close()

    before = asyncio.all_tasks()
    async with await asyncio.start_server(close_late, "127.0.0.1", 0) as server:
        host = "{}:{}".format(*server.sockets[0].getsockname())
        finding = asyncio.create_task(connect(f"redis+sentinel://{host},{host}/jobs").finder.find())
        await eventually(lambda: len(asked) == 2)
        finding.cancel()
        await asyncio.wait([finding])
        assert asyncio.all_tasks() - before == asked
        over.set()
        await asyncio.wait(asyncio.all_tasks() - before)
    assert finding.cancelled()
    del finding
    gc.collect()
    assert unheard == []


# -- TLS ------------------------------------------------------------------------------------------


@dataclass
class Tls:
    server: RedisServer
    port: int
    ca: Path

    def url(self, **given: str | Path) -> str:
        folder = self.ca.parent
        own = {"ssl_certfile": folder / "own.crt", "ssl_keyfile": folder / "own.key"}
        chosen = {"ssl_ca_certs": self.ca, **own, **given}
        query = "&".join(f"{name}={value}" for name, value in chosen.items() if value)
        return f"rediss://127.0.0.1:{self.port}?{query}"


def openssl(folder: Path, *arguments: str) -> None:
    done = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def certificates(folder: Path) -> None:
    """`ca.crt`, and signed by it `own.crt` with `own.key`, good for 127.0.0.1 and for clients."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    for name in ("ca", "other-ca"):
        files = ("-keyout", f"{name}.key", "-out", f"{name}.crt")
        signs = ("-addext", "keyUsage=critical,keyCertSign")
        openssl(folder, "req", "-x509", *key, "-subj", f"/CN={name}", "-days", "2", *signs, *files)
    openssl(folder, "req", *key, "-subj", "/CN=jq", "-keyout", "own.key", "-out", "own.csr")
    # Since 3.13 Python wants to know whose key signed it.
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=keyid\n")
    openssl(folder, "x509", "-req", "-in", "own.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "own.crt")  # fmt: skip


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tls]:
    """A Redis that wants to see clients' certificates, on a port of its own."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    files = {"tls-ca-cert-file": "ca.crt", "tls-cert-file": "own.crt", "tls-key-file": "own.key"}
    options = [part for name, file in files.items() for part in (f"--{name}", str(folder / file))]
    with RedisServer("--bind", "127.0.0.1", "--tls-port", str(port), *options) as server:
        yield Tls(server, port, folder / "ca.crt")


async def test_library_worker_and_master_speak_tls(tls: Tls, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(APP.format(url=tls.url(), namespace="{tls}"))
    with (
        MasterProcess("--redis", tls.url(), "--namespace", "{tls}") as master,
        Process("jqmaster.cli", "work", "shop:jq", folder=tmp_path, ready="ready"),
    ):
        jq = JQ(tls.url(), namespace="{tls}")
        # With waits: blocking reads and subscriptions go over connections of their own.
        handle = jq.task("double", keep_result=True).enqueue(21)
        assert await asyncio.to_thread(handle.result, 60) == 42
        async with aiohttp.ClientSession() as session, session.get(f"{master.url}/health") as answer:
            assert answer.status == 200
        jq.close()


async def test_a_server_of_another_authority_is_refused(tls: Tls) -> None:
    with pytest.raises(StartError, match="CERTIFICATE_VERIFY_FAILED"):
        url = tls.url(ssl_ca_certs=tls.ca.with_name("other-ca.crt"))
        await Server(ServeOptions(redis_url=url, port=0)).__aenter__()


async def test_a_client_without_a_certificate_is_refused(tls: Tls) -> None:
    with pytest.raises(StartError, match="cannot use Redis at"):
        await Server(ServeOptions(redis_url=tls.url(ssl_certfile="", ssl_keyfile=""), port=0)).__aenter__()
