"""A real application server for calls: FastAPI under uvicorn, on a port of its own, misbehaving on
request. It writes down all that it is asked."""

import asyncio
import datetime as dt
import gzip
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse, StreamingResponse

from support.workers import until


@dataclass(frozen=True)
class Seen:
    """One request as it came over the wire."""

    method: str
    path: str  # as sent, not decoded
    query: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Told:
    """What the server was asked, and by whom it was left."""

    requests: list[Seen] = field(default_factory=list)
    left: threading.Event = field(default_factory=threading.Event)  # a caller hung up
    go_on: threading.Event = field(default_factory=threading.Event)  # ends what is slow

    @property
    def last(self) -> Seen:
        return self.requests[-1]


def application(told: Told) -> FastAPI:
    app = FastAPI(openapi_url=None)

    @app.middleware("http")
    async def write_down(request: Request, call_next: Any) -> Any:
        told.requests.append(
            Seen(
                request.method,
                request.scope["raw_path"].decode(),
                request.scope["query_string"].decode(),
                dict(request.headers),
                await request.body(),
            )
        )
        return await call_next(request)

    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]

    @app.api_route("/echo/{rest:path}", methods=methods)
    @app.api_route("/echo", methods=methods)
    async def echo(request: Request) -> Any:
        body = await request.body()
        return {"method": request.method, "body": await request.json() if body else None}

    @app.api_route("/status/{code}", methods=methods)
    async def status(code: int) -> Response:
        return Response(f'{{"detail": "this is {code}"}}', code, media_type="application/json")

    @app.post("/fails-once")
    async def fails_once(request: Request) -> Response:
        key = request.headers["idempotency-key"]
        calls = [seen for seen in told.requests if seen.headers["idempotency-key"] == key]
        return JSONResponse({"attempt": len(calls)}, 503 if len(calls) == 1 else 200)

    @app.post("/busy")
    async def busy(request: Request) -> Response:
        return Response("later", 429, headers=dict(request.query_params))

    @app.post("/tells-secrets")
    async def tells_secrets(request: Request) -> Response:
        return PlainTextResponse(f"wrong token {request.headers['authorization']}\n\0!", 400)

    @app.post("/tells-half-a-secret")
    async def tells_half(request: Request) -> Response:
        return PlainTextResponse("x" * 495 + request.headers["authorization"], 400)

    @app.post("/text")
    async def text() -> Response:
        return PlainTextResponse("x" * 100_000 + " the end")

    @app.post("/untyped")
    async def untyped() -> Response:
        return Response('{"n": 1}')

    @app.post("/bad-json")
    async def bad_json() -> Response:
        return Response('{"n": ', media_type="application/json")

    @app.post("/unkeepable")
    async def unkeepable() -> Response:
        return Response('{"n": "\\u0000"}', media_type="application/json")

    @app.post("/redirect")
    async def redirect(request: Request) -> Response:
        return Response(status_code=307, headers={"Location": str(request.url_for("echo"))})

    @app.post("/huge")
    async def huge() -> Response:
        async def endless() -> AsyncIterator[bytes]:
            while True:
                yield b"[" + b"0," * 50_000

        return StreamingResponse(endless(), media_type="application/json")

    @app.post("/bomb")
    async def bomb() -> Response:
        packed = gzip.compress(b'"' + b"0" * 100_000_000 + b'"')
        return Response(packed, media_type="application/json", headers={"Content-Encoding": "gzip"})

    @app.post("/packed")
    async def packed() -> Response:
        body = gzip.compress(b'{"n": 1}')
        return Response(body, media_type="application/json", headers={"Content-Encoding": "gzip"})

    @app.post("/half")
    async def half() -> Response:
        async def begin() -> AsyncIterator[bytes]:
            yield b'{"n": '

        return StreamingResponse(
            begin(), media_type="application/json", headers={"Content-Length": "100"}
        )

    @app.post("/hang")
    async def hang(request: Request) -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        told.left.set()
        return Response()

    @app.post("/drip")
    async def drip(request: Request) -> Response:
        async def drops() -> AsyncIterator[bytes]:
            try:
                # A generator that nobody closes ends when the collector finds it: so it looks.
                while not await request.is_disconnected():
                    yield b" "
                    await asyncio.sleep(0.05)
            finally:
                told.left.set()

        return StreamingResponse(drops(), media_type="application/json")

    @app.post("/slow")
    async def slow() -> Any:
        """Answers once the test says so."""
        await asyncio.to_thread(told.go_on.wait, 60)
        return {"slow": True}

    return app


@dataclass(frozen=True)
class AppServer:
    """Where an application listens."""

    url: str
    told: Told


@contextmanager
def serving(app: Any, *, tls: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Run an application; answers its URL, by address."""
    listening = socket.create_server(("127.0.0.1", 0))
    certificate, key = tls or (None, None)
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="off",
        ws="none",
        date_header=False,
        timeout_graceful_shutdown=1,
        ssl_certfile=certificate and str(certificate),
        ssl_keyfile=key and str(key),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        until(lambda: server.started, "the application server listens")
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@contextmanager
def app_server(*, tls: tuple[Path, Path] | None = None) -> Iterator[AppServer]:
    told = Told()
    with serving(application(told), tls=tls) as url:
        try:
            yield AppServer(url, told)
        finally:
            told.go_on.set()


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody trusts, and its key."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(alternative, critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths
