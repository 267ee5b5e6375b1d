"""A bare Quart handler on the settings of JQ's server: what a request costs before JQ does anything.

drivers/echo.py <port>
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvloop
from hypercorn.asyncio import serve
from quart import Quart, Response, request

from jqmaster.server.http import http1

app = Quart("echo", static_folder=None)


@app.post("/job")
async def echo() -> Response:
    return Response(await request.get_data(), content_type="application/msgpack")


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    asgi: Any = app
    uvloop.run(serve(asgi, http1.config(listening.detach())))
