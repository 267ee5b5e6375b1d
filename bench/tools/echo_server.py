"""A bare Quart handler on the master's Hypercorn settings: what a request costs before JQ does anything.

tools/echo_server.py <port>
"""

from __future__ import annotations

import sys
from typing import Any

import uvloop
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart, Response, request

from jqmaster.master.server import BACKLOG, KEEP_ALIVE_REQUESTS, KEEP_ALIVE_S

app = Quart("echo", static_folder=None)


@app.post("/echo")
async def echo() -> Response:
    return Response(await request.get_data(), content_type="application/msgpack")


def settings(port: int) -> Config:
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.keep_alive_timeout = KEEP_ALIVE_S
    config.keep_alive_max_requests = KEEP_ALIVE_REQUESTS
    config.backlog = BACKLOG
    config.loglevel = "WARNING"
    config.include_server_header = False
    return config


if __name__ == "__main__":
    asgi: Any = app
    uvloop.run(serve(asgi, settings(int(sys.argv[1]))))
