"""The web UI's files, as they are in the package (jqmaster/ui), under `/ui/`."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from quart import Quart, request
from quart import Response as QuartResponse
from werkzeug.exceptions import NotFound

# No script or style but our own files, nothing from or to other hosts, no frames, no markup from text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Asked for again each time, and answered with 304: after an upgrade nobody has old files beside new ones.
    "cache-control": "no-cache",
    "vary": "accept-encoding",
}
_TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
_STATIC = "static/"


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    packed: bytes
    etag: str
    content_type: str


def add_ui(app: Quart) -> None:
    """Serve the UI; `/` leads to it all but those who take no page."""
    for path, view in (("/", _root), ("/ui", _to_ui), ("/ui/", _page), ("/ui/<path:rest>", _page)):
        app.add_url_rule(path, endpoint=f"ui {path}", view_func=view, methods=["GET"], provide_automatic_options=False)


@cache
def files() -> dict[str, _File]:
    """All files by their path below `ui/`."""
    by_path: dict[str, _File] = {}

    def walk(folder: Any, prefix: str) -> None:
        for entry in folder.iterdir():
            name = f"{prefix}{entry.name}"
            if entry.is_dir():
                walk(entry, f"{name}/")
            elif (kind := entry.name.rpartition(".")[2]) in _TYPES:
                body = entry.read_bytes()
                etag = hashlib.sha256(body).hexdigest()[:20]
                by_path[name] = _File(body, gzip.compress(body, 9, mtime=0), etag, _TYPES[kind])

    walk(resources.files("jqmaster") / "ui", "")
    return by_path


async def _root() -> QuartResponse:
    accept = request.headers.get("accept", "*/*")
    if "text/html" not in accept and "*/*" not in accept:
        raise NotFound
    return await _to_ui()


async def _to_ui() -> QuartResponse:
    return QuartResponse(b"", status=302, headers={"location": "/ui/", "vary": "accept"})


async def _page(rest: str = "") -> QuartResponse:
    """A file below `static/`; any other path is a page, which the script in index.html shows."""
    name = rest if rest.startswith(_STATIC) else "index.html"
    file = files().get(name)
    if file is None:
        raise NotFound
    headers = {**HEADERS, "etag": f'"{file.etag}"'}
    if file.etag in request.headers.get("if-none-match", ""):
        return QuartResponse(b"", status=304, headers=headers)
    body = file.body
    if "gzip" in request.headers.get("accept-encoding", ""):
        body = file.packed
        headers["content-encoding"] = "gzip"
    return QuartResponse(body, headers=headers, content_type=file.content_type)
