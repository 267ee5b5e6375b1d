"""The web UI's files, as they are in the package (jqmaster/ui): the page under `/ui/`, all that it loads under the
digest of all of it, `/ui/<digest>/`. Browsers keep that for ever, and after an upgrade nobody mixes old and new."""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache, lru_cache
from pathlib import Path

from quart import Quart, request
from quart import Response as QuartResponse
from werkzeug.exceptions import NotFound

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
    "vary": "accept-encoding, x-forwarded-prefix",
}
# The page names the files of its version, so it is asked for again each time.
_PAGE = {"cache-control": "no-cache"}
_KEPT = {"cache-control": "public, max-age=31536000, immutable"}
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
_DIGEST = re.compile(r"[0-9a-f]{20}")
_PREFIX = re.compile(r"(/[\w.~-]+)+")


def is_page(path: str) -> bool:
    """Whether it is one of the UI's, and none of the API."""
    return path in ("/", "/ui") or path.startswith("/ui/")


def pages(root_path: str = "") -> Quart:
    """The UI; `/` leads to it. `root_path`: where browsers ask for it, unless a proxy says it
    (`X-Forwarded-Prefix`)."""
    app = Quart("jqmaster", static_folder=None)
    # Pages take no body, and a slow reader on a bad line is not an error of the server's.
    app.config.update(MAX_CONTENT_LENGTH=0, RESPONSE_TIMEOUT=None)
    app.url_map.merge_slashes = False

    def prefix() -> str:
        said = request.headers.get("x-forwarded-prefix", "").rstrip("/")
        return said if _PREFIX.fullmatch(said) else root_path

    @app.get("/")
    @app.get("/ui")
    async def to_ui() -> QuartResponse:
        headers = {"location": f"{prefix()}/ui/", "vary": "x-forwarded-prefix"}
        return QuartResponse(b"", status=302, headers=headers)

    @app.get("/ui/")
    @app.get("/ui/<path:rest>")
    async def page(rest: str = "") -> QuartResponse:
        folder, _, name = rest.partition("/")
        if not _DIGEST.fullmatch(folder):
            return _sent("index.html", _PAGE, prefix())
        path = f"static/{name}"
        if folder != digest() or path not in files():
            raise NotFound  # or it is of another version
        return _sent(path, _KEPT)

    return app


@cache
def files() -> dict[str, bytes]:
    """All files by their path below `ui/`."""
    folder = Path(__file__).parents[2] / "ui"
    paths = (path for path in folder.rglob("*") if path.suffix in _TYPES)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


@cache
def digest() -> str:
    """Of all files, by name and content."""
    parts = (f"{name} {len(body)}\n".encode() + body for name, body in sorted(files().items()))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:20]


@lru_cache(maxsize=256)
def _body(path: str, prefix: str, *, is_packed: bool) -> bytes:
    """A file. The page, whose script shows what its path names, has all that it loads under a prefix."""
    body = files()[path]
    if path == "index.html":
        body = body.replace(b"/ui/static/", f"/ui/{digest()}/".encode()).replace(b'="/ui/', f'="{prefix}/ui/'.encode())
    return gzip.compress(body, 9, mtime=0) if is_packed else body


def _sent(path: str, kept: dict[str, str], prefix: str = "") -> QuartResponse:
    is_packed = "gzip" in request.headers.get("accept-encoding", "")
    headers = HEADERS | kept | ({"content-encoding": "gzip"} if is_packed else {})
    body = _body(path, prefix, is_packed=is_packed)
    return QuartResponse(body, headers=headers, content_type=_TYPES[path[path.rindex(".") :]])
