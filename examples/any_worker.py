"""A push worker without any JQ code: what it takes, in any language. Works until it has done three jobs.

python any_worker.py [URL of the master]
"""

import base64
import hmac
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

import msgpack

MASTER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"
MSGPACK = {"content-type": "application/msgpack"}

SECRET = "whsec_" + base64.b64encode(os.urandom(32)).decode()
SEEN: dict[str, float] = {}  # ids of pushes, and when they came


def is_masters(secrets, headers, body, now=None):
    """Whether a push is a master's, and new. `headers`: by their names in small letters."""
    now = now or time.time()
    push_id, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not push_id or "." in push_id or not moment.isdigit() or abs(now - int(moment)) > 300:
        return False
    right = set()
    for secret in secrets:
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.digest(key, f"{push_id}.{moment}.".encode() + body, "sha256")
        right.add(b"v1," + base64.b64encode(digest))
    given = headers.get("webhook-signature", "").encode().split()
    if not any(hmac.compare_digest(one, other) for one in right for other in given):
        return False
    for old in [old for old, came in SEEN.items() if came < now - 600]:
        del SEEN[old]
    if push_id in SEEN:
        return False
    SEEN[push_id] = now
    return True


class Api(BaseHTTPRequestHandler):
    """`POST /worker-job`, answered with the outcome itself."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("content-type") != "application/msgpack" or not is_masters([SECRET], headers, body):
            return self.answer(401, {"error": {"code": "UNAUTHORIZED", "message": "not signed by a master"}})
        job = msgpack.unpackb(body)
        print("got", job["name"], job["argument"], flush=True)
        if job["name"] == "shout":
            self.answer(200, {"type": "success", "result": job["argument"].upper()})
        else:
            self.answer(404, {"error": {"code": "NOTFOUND", "message": f"no {job['name']} here"}})

    def answer(self, status: int, content: object) -> None:
        body = msgpack.packb(content)
        self.send_response(status)
        self.send_header("content-type", "application/msgpack")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


with HTTPServer(("127.0.0.1", 0), Api) as server:
    me = {
        "name": "shouter",
        "queues": ["shout"],
        "url": f"http://127.0.0.1:{server.server_port}",
        "max_jobs": 1,
        "secrets": [SECRET],
    }
    with urlopen(Request(f"{MASTER}/worker", msgpack.packb(me), MSGPACK)) as reply:
        worker_id = msgpack.unpackb(reply.read())["worker_id"]
    print("registered", flush=True)
    for _ in range(3):
        server.handle_request()
    with urlopen(Request(f"{MASTER}/worker/{worker_id}", method="DELETE")):
        print("unregistered", flush=True)
