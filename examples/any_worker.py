"""A push worker without any JQ code: what it takes, in any language. Works until it has done three jobs.

python any_worker.py [URL of the master]
"""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

import msgpack

MASTER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8400"
MSGPACK = {"content-type": "application/msgpack"}


class Api(BaseHTTPRequestHandler):
    """`POST /worker-job`, answered with the outcome itself."""

    def do_POST(self) -> None:
        job = msgpack.unpackb(self.rfile.read(int(self.headers["content-length"])))
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
    }
    with urlopen(Request(f"{MASTER}/worker", msgpack.packb(me), MSGPACK)) as reply:
        worker_id = msgpack.unpackb(reply.read())["worker_id"]
    print("registered", flush=True)
    for _ in range(3):
        server.handle_request()
    with urlopen(Request(f"{MASTER}/worker", headers={"worker-id": worker_id}, method="DELETE")):
        print("unregistered", flush=True)
