"""A real HTTP server that speaks the OpenAI and Anthropic protocols, streaming and failures included, from a script.

    with ModelServer([Status(429, headers={"retry-after": "1"}), Reply("Hi")]) as server:
        connect("openai/x", ModelOptions(base_url=server.openai_url))

Each request takes the next behaviour of the script; the last one repeats. A script may also be a function of the request.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, TypeAlias

from support.model_protocols import PROTOCOLS, Call, ErrorEvent, Reply, Status

__all__ = [
    "Behaviour",
    "Call",
    "Cut",
    "ErrorEvent",
    "Hang",
    "ModelServer",
    "Raw",
    "Reply",
    "Request",
    "Script",
    "Status",
    "Trickle",
]


@dataclass(frozen=True)
class Raw:
    """A body sent as it is, with status 200."""

    body: str = '{"id": "x", "choices": [{"mess'
    content_type: str = "application/json"


@dataclass(frozen=True)
class Trickle:
    """A body that never ends: a space every tenth of a second."""


@dataclass(frozen=True)
class Hang:
    """No answer until the server ends."""


@dataclass(frozen=True)
class Cut:
    """The connection closes: before anything is sent, or in the middle of a stream after `events` of them."""

    reply: Reply = Reply("half of a reply")
    events: int = 2


Behaviour: TypeAlias = Reply | Status | Raw | Trickle | Hang | Cut | ErrorEvent
Script: TypeAlias = Sequence[Behaviour] | Callable[["Request"], Behaviour]


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: Any

    @property
    def turns(self) -> int:
        """Assistant turns in the conversation so far."""
        items = self.body.get("messages") or self.body.get("input") or []
        return sum(item.get("role") == "assistant" or item.get("type") == "function_call" for item in items)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gives up resets its connection, which is no fault of the server's to print."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ModelServer:
    """Listens on a free port of the loopback address while the context is open."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._lock = threading.Lock()
        self.requests: list[Request] = []
        self.over = threading.Event()
        server = self

        class Handler(_Handler):
            owner = server

        self._http = _Quiet(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """For the Anthropic SDK, which adds `/v1` itself."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def take(self, request: Request) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            number = len(self.requests) - 1
        if callable(self._script):
            return self._script(request)
        return self._script[min(number, len(self._script) - 1)]

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
        request = Request(self.path.partition("?")[0], {name.lower(): value for name, value in self.headers.items()}, body)
        behaviour = self.owner.take(request)
        stream = bool(body.get("stream"))
        protocol = PROTOCOLS[request.path]
        match behaviour:
            case Reply() if stream:
                self._stream(protocol.events(behaviour, body["model"]), done=protocol.done)
            case Reply():
                self._send(200, json.dumps(protocol.body(behaviour, body["model"])))
            case Status():
                self._send(behaviour.code, json.dumps(protocol.error(behaviour)), headers=behaviour.headers)
            case Raw():
                self._send(200, behaviour.body, behaviour.content_type)
            case Trickle():
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("transfer-encoding", "chunked")
                self.end_headers()
                while not self.owner.over.wait(0.1):
                    try:
                        self._chunk(" ")
                    except OSError:  # the client has had enough
                        break
                self.close_connection = True
            case Hang():
                self.owner.over.wait()
                self.close_connection = True
            case Cut() if stream:
                self._stream(protocol.events(behaviour.reply, body["model"])[: behaviour.events], done=None)
            case Cut():
                self.close_connection = True
            case ErrorEvent():
                events = protocol.events(Reply("begun"), body["model"])[:2]
                self._stream([*events, protocol.error_event(behaviour)], done=None)

    def _send(
        self, code: int, text: str, content_type: str = "application/json", headers: Mapping[str, str] | None = None
    ) -> None:
        data = text.encode()
        self.send_response(code)
        for name, value in {"content-type": content_type, "content-length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Sequence[Mapping[str, Any]], done: str | None) -> None:
        """Server-sent events in HTTP chunks; without `done` the connection breaks off after them."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self._chunk(f"{name}data: {json.dumps(event)}\n\n")
        if done is None:
            self.close_connection = True
            return
        if done:
            self._chunk(done)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()
