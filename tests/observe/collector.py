"""An OTLP/HTTP collector: takes spans as an exporter sends them, and holds them for a test."""

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

DEADLINE = 30.0


class Got:
    """One span, in plain values."""

    def __init__(self, span: Any, resource: dict[str, Any]) -> None:
        self.name: str = span.name
        self.kind: int = span.kind
        self.trace_id: str = span.trace_id.hex()
        self.span_id: str = span.span_id.hex()
        self.parent: str = span.parent_span_id.hex()
        self.attributes = _plain(span.attributes)
        self.links = {
            _plain(link.attributes)["fairlane.relation"]: (link.trace_id.hex(), link.span_id.hex())
            for link in span.links
        }
        self.status: int = span.status.code
        self.told: str = span.status.message
        self.resource = resource

    @property
    def place(self) -> tuple[str, str]:
        return self.trace_id, self.span_id

    def __repr__(self) -> str:
        return f"{self.name} {self.attributes} {self.links} {self.told}"


class Collector:
    def __init__(self, url: str) -> None:
        self.url = url
        self.found: list[Got] = []
        self.news = threading.Condition()

    def take(self, body: bytes) -> None:
        sent = ExportTraceServiceRequest.FromString(body)
        with self.news:
            for batch in sent.resource_spans:
                resource = _plain(batch.resource.attributes)
                for scope in batch.scope_spans:
                    self.found += [Got(span, resource) for span in scope.spans]
            self.news.notify_all()

    def until(self, count: int, fits: Callable[[Got], bool]) -> list[Got]:
        """So many spans that fit, in the order they ended."""
        with self.news:
            enough = self.news.wait_for(
                lambda: len([each for each in self.found if fits(each)]) >= count, DEADLINE
            )
            assert enough, self.found
            return [each for each in self.found if fits(each)]


@contextmanager
def collector() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            found.take(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found = Collector(f"http://127.0.0.1:{server.server_port}")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield found
        server.shutdown()


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}
