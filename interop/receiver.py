"""A webhook's receiver as its operator would write it: the standard library's HTTP server on a free port, which
checks every request before it counts. What a body says is for an SDK to tell, whose types come in as `parse`.
"""

import asyncio
import base64
import hashlib
import hmac
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from runner import equal, until

# What the webhooks of the tests are to show.
TOKEN = "a-token"
CREDENTIALS = "some-credentials"

MEDIA_TYPES = {"0.3": "application/json", "1.0": "application/a2a+json"}

# How old a signature may be, as the receivers' libraries have it.
TOLERANCE_SECONDS = 300


@dataclass
class Delivery:
    id: str
    body: bytes
    # As the SDK's type.
    event: object
    # Answered with 200 and not with 503.
    taken: bool


class Receiver:
    """Takes what one webhook is told. `refuse` is which event, counted from 1, it does not take the first time."""

    def __init__(self, address, version, parse, refuse=0):
        self.deliveries = []
        self._address = address
        self._version = version
        self._parse = parse
        self._refuse = refuse
        self._seen = []
        self._requests = asyncio.Queue()

    async def __aenter__(self):
        self._loop = asyncio.get_running_loop()
        self._http = httpx.AsyncClient(base_url=self._address, verify=False)
        self._secrets = (await self._ask("/api/webhooks/secret"))["secrets"]
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/hook?shelf=b4"
        return self

    async def __aexit__(self, *_):
        await self._http.aclose()
        self._server.shutdown()
        self._server.socket.close()

    async def next(self):
        """The next request, checked."""
        target, headers, body, taken = await self._requests.get()
        equal(target, "/hook?shelf=b4")
        equal(headers["content-type"], MEDIA_TYPES[self._version])
        equal(headers["a2a-version"], self._version)
        equal(headers["x-a2a-notification-token"], TOKEN)
        equal(headers["authorization"], f"Bearer {CREDENTIALS}")
        self._verify(headers, body)
        delivery = Delivery(headers["webhook-id"], body, self._parse(body), taken)
        self.deliveries.append(delivery)
        return delivery

    async def told(self, task_id, is_last):
        """All events that came, up to the last one. That there are no more is what the server says too."""
        while not ((delivery := await self.next()).taken and is_last(delivery.event)):
            pass
        taken = [delivery for delivery in self.deliveries if delivery.taken]
        equal(len({delivery.id for delivery in taken}), len(taken))
        webhook = await until(lambda: self._webhook(task_id), lambda webhook: webhook["state"] == "finished")
        equal((webhook["delivered"], webhook["dead"]), (len(taken), 0))
        self.is_quiet()
        return [delivery.event for delivery in taken]

    def is_quiet(self):
        equal(self._requests.qsize(), 0)

    def _verify(self, headers, body):
        """Standard Webhooks, with any of the secrets."""
        sent_at = headers["webhook-timestamp"]
        assert abs(time.time() - int(sent_at)) < TOLERANCE_SECONDS, sent_at
        content = f"{headers['webhook-id']}.{sent_at}.".encode() + body
        keys = [base64.b64decode(secret.removeprefix("whsec_"), validate=True) for secret in self._secrets]
        digests = [hmac.new(key, content, hashlib.sha256).digest() for key in keys]
        valid = [f"v1,{base64.b64encode(digest).decode()}" for digest in digests]
        given = headers["webhook-signature"].split(" ")
        assert any(hmac.compare_digest(one, other) for one in valid for other in given), given

    async def _webhook(self, task_id):
        webhooks = (await self._ask("/api/webhooks", task=task_id))["webhooks"]
        (webhook,) = [webhook for webhook in webhooks if webhook["endpoint"].endswith(f":{self.port}")]
        return webhook

    async def _ask(self, path, **parameters):
        return (await self._http.get(path, params=parameters)).raise_for_status().json()

    def _take(self, target, headers, body):
        """Called by the server's threads, one after the other: a webhook has one request under way."""
        event = headers["webhook-id"]
        taken = event in self._seen or len(self._seen) + 1 != self._refuse
        if event not in self._seen:
            self._seen.append(event)
        self._loop.call_soon_threadsafe(self._requests.put_nowait, (target, headers, body, taken))
        return taken

    def _handler(receiver):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers["content-length"]))
                self.send_response(200 if receiver._take(self.path, headers, body) else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        return Handler
