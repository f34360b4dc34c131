"""Sends the spans of a process of ours to where the standard variables of OpenTelemetry say.

None of them set: nothing is imported. A provider that the application has set is left alone: what
it exports, and where to, is its own affair.
"""

import logging
import os
import threading
from collections.abc import Mapping

from fairlane.observe import tracing

log = logging.getLogger("fairlane.traces")

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
FLUSH = 3.0  # seconds for the last spans


def wanted(environ: Mapping[str, str] = os.environ) -> str | None:
    """Which exporter the variables ask for: "otlp" or "console"; None where traces are off."""
    if environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return None
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if not named:
        return "otlp" if any(environ.get(name) for name in ENDPOINTS) else None
    return None if named == "none" else named


def start(service: str) -> None:
    """Export spans from now on, if the variables ask for it. What cannot be had is told, and traces
    stay off: they must not keep work from being done."""
    exporter = wanted()
    if exporter is None or tracing.spans() is not None:
        return
    if exporter not in ("otlp", "console"):
        log.warning('traces are off: OTEL_TRACES_EXPORTER is "%s"; use otlp or console', exporter)
        return
    protocol = next((os.environ[name] for name in PROTOCOLS if os.environ.get(name)), None)
    if exporter == "otlp" and protocol not in (None, "http/protobuf"):
        log.warning('traces are off: OTLP goes by http/protobuf here, not by "%s"', protocol)
        return
    try:
        _set(service, exporter)
    except ImportError:
        log.warning("traces are off: install them with: pip install 'fairlane[otel]'")
        return
    log.info("traces are on: %s", exporter)


def _set(service: str, exporter: str) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        ConsoleSpanExporter,
        SpanExporter,
    )

    to: SpanExporter
    if exporter == "console":
        to = ConsoleSpanExporter()
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        to = OTLPSpanExporter()
    # A name that the variables give counts more than ours.
    named = Resource.create({SERVICE_NAME: service}).merge(OTELResourceDetector().detect())
    # Whoever starts this calls flush() at the end, which does not wait for ever.
    provider = TracerProvider(resource=named, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(to))
    trace.set_tracer_provider(provider)


def flush() -> None:
    """Before a process ends: the last spans go out. A collector that does not answer holds up no
    stop: the SDK itself would wait for it, batch after batch."""
    if tracing.spans() is None:
        return
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if hasattr(provider, "force_flush"):
        sending = threading.Thread(
            target=provider.force_flush, args=[int(FLUSH * 1000)], name="last-spans", daemon=True
        )
        sending.start()
        sending.join(FLUSH)
        if sending.is_alive():
            log.warning("the last spans were not taken within %g s", FLUSH)
