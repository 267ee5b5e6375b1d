"""What a browser is told beside the answers: where the pages are behind a proxy, and what to keep."""

from __future__ import annotations

from typing import Any

import pytest

from http_support import JSON, MSGPACK, Api, api, asgi, master  # noqa: F401
from jqmaster.server.http.app import App
from jqmaster.server.http.ui import digest
from jqmaster.server.master import Master


async def get(app: Any, path: str, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await asgi(app, "GET", path, {"accept": "*/*", **named})


@pytest.mark.parametrize("path", ["/queues", "/health", "/nowhere", "/openapi.yaml", "/metrics"])
async def test_nothing_is_kept_and_no_type_is_guessed(api: Api, path: str) -> None:
    answer = await get(api.app, path, accept=JSON if path != "/metrics" else "*/*")
    assert (answer.headers["cache-control"], answer.headers["x-content-type-options"]) == ("no-store", "nosniff")


async def test_under_a_path_that_is_passed_on(master: Master) -> None:
    app = App(master, root_path="/jq")
    assert (await get(app, "/jq/alive", accept=JSON)).value == {"status": "ok"}
    assert (await get(app, "/alive", accept=JSON)).value == {"status": "ok"}
    assert (await get(app, "/jqx/alive")).status == 404
    for path in ("/jq", "/jq/", "/", "/jq/ui"):
        told = await get(app, path)
        assert (told.status, told.headers["location"]) == (302, "/jq/ui/"), path
    assert (await get(app, f"/jq/ui/{'0' * 20}/app.js")).status == 404, "of another version"
    page = (await get(app, "/jq/ui/queue/a")).raw.decode()
    assert f'src="/jq/ui/{digest()}/app.js"' in page and '"/ui/' not in page
