"""The web UI's files, as they are in the package (jqmaster/ui): the page under `/ui/`, all that it loads under the
digest of all of it, `/ui/<digest>/`. Browsers keep that for long, and after an upgrade nobody mixes old and new."""

from __future__ import annotations

import gzip
import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from quart import Quart, Response, abort, redirect, request

FOLDER = Path(__file__).parents[2] / "ui"
# No script or style but our own files, no image but the page's icon, nothing from or to other hosts, no frames, no
# markup from text.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "vary": "accept-encoding",
}


def is_page(path: str) -> bool:
    """Whether it is one of the UI's, and none of the API."""
    return path in ("/", "/ui") or path.startswith("/ui/")


def pages(root_path: str = "") -> Quart:
    """The UI; `/` leads to it. `root_path`: where browsers ask for it."""
    loaded = f"/ui/{digest()}"
    app = Quart("jqmaster", static_folder=str(FOLDER / "static"), static_url_path=loaded)
    # Pages take no body, and a slow reader on a bad line is not an error of the server's.
    app.config.update(MAX_CONTENT_LENGTH=0, RESPONSE_TIMEOUT=None, SEND_FILE_MAX_AGE_DEFAULT=31_536_000)
    app.url_map.merge_slashes = False
    page = (FOLDER / "index.html").read_text().replace("/ui/static", loaded).replace('="/ui/', f'="{root_path}/ui/')

    @app.get("/")
    @app.get("/ui")
    async def to_ui() -> Any:
        return redirect(f"{root_path}/ui/")

    @app.get("/ui/")
    @app.get("/ui/<path:path>")
    async def show(path: str = "") -> Response:
        if path.find("/") == len(digest()):  # a file of another version
            abort(404)
        # Its script shows what the path names. It names the files of its version, so it is asked for again each time.
        return Response(page, headers={"cache-control": "no-cache"})

    @app.after_request
    async def finish(response: Response) -> Response:
        response.headers.update(HEADERS)
        if response.status_code == 200 and "gzip" in request.headers.get("accept-encoding", ""):
            response.set_data(_packed(await response.get_data(as_text=False)))
            response.headers["content-encoding"] = "gzip"
        return response

    return app


@cache
def digest() -> str:
    """Of all files that the page loads, by name and content."""
    files = sorted(path for path in FOLDER.rglob("*") if path.is_file())
    parts = (f"{path.relative_to(FOLDER)} {path.stat().st_size}\n".encode() + path.read_bytes() for path in files)
    return hashlib.sha256(b"".join(parts)).hexdigest()[:20]


@lru_cache(maxsize=256)
def _packed(body: bytes) -> bytes:
    return gzip.compress(body, 9, mtime=0)
