"""The spans of Fairlane, by the messaging conventions of OpenTelemetry. These are still called
Development: all names that come from them stand here. Imported only when traces are on."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from opentelemetry import context
from opentelemetry.trace import (
    INVALID_SPAN,
    Link,
    Span,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from fairlane.observe import trace
from fairlane.outcome import Failed, Outcome, word_of
from fairlane.redact import speaking
from fairlane.version import VERSION

if TYPE_CHECKING:
    from fairlane.worker.attempt import Attempt

SYSTEM = "messaging.system"
OPERATION = "messaging.operation.name"
OPERATION_TYPE = "messaging.operation.type"
DESTINATION = "messaging.destination.name"
MESSAGE = "messaging.message.id"
CONVERSATION = "messaging.message.conversation_id"
BATCH = "messaging.batch.message_count"
CLIENT = "messaging.client.id"
ERROR = "error.type"
TENANT = "fairlane.tenant"
DEFINITION = "fairlane.definition"
ATTEMPT = "fairlane.attempt"
OUTCOME = "fairlane.outcome"
RELATION = "fairlane.relation"  # of a link: to whom it leads

_w3c = TraceContextTextMapPropagator()


class Sent(Protocol):
    """A job as it was enqueued."""

    @property
    def id(self) -> UUID: ...
    @property
    def queue(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def definition_key(self) -> str: ...


class Spans:
    """`send {queue}` where a job is enqueued; `process {queue}` for each attempt, linked to it."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("fairlane", VERSION)

    @contextmanager
    def sending(self, caller: str | None = None) -> Iterator["Sending"]:
        """What is enqueued inside carries this span's context. `caller`: the trace of a request,
        which counts where nothing here has taken it up."""
        here = get_current_span() is INVALID_SPAN
        parent = context_of(caller) if here and caller else None
        span = self._tracer.start_span("send", parent, SpanKind.PRODUCER, _operation("send"))
        before = trace.CURRENT.set(trace_of(span) or caller)
        try:
            yield Sending(span)
        except Exception as error:
            told = speaking().text(str(error))
            _fail(span, type(error).__qualname__, told)
            raise
        finally:
            trace.CURRENT.reset(before)
            span.end()

    def process(self, attempt: "Attempt", worker: str | None) -> "Processing":
        """A trace of its own for each attempt: it may begin hours after the call that asked for it,
        and again after that; a link leads back."""
        came = ((attempt.trace, "producer"), (attempt.last_trace, "previous attempt"))
        links = [
            Link(get_current_span(context_of(each)).get_span_context(), {RELATION: relation})
            for each, relation in came
            if each
        ]
        attributes = {
            **_operation("process"),
            DESTINATION: attempt.queue,
            MESSAGE: str(attempt.job_id),
            TENANT: attempt.tenant,
            DEFINITION: attempt.key,
            ATTEMPT: attempt.number,
        }
        if attempt.correlation_id is not None:
            attributes[CONVERSATION] = attempt.correlation_id
        if worker is not None:
            attributes[CLIENT] = worker
        span = self._tracer.start_span(
            f"process {attempt.queue}", context.Context(), SpanKind.CONSUMER, attributes, links
        )
        # Nothing takes it back: an attempt is a task of its own, with a context of its own.
        context.attach(set_span_in_context(span))
        return Processing(span)


class Sending:
    """One call that enqueues, for one job or for many."""

    def __init__(self, span: Span) -> None:
        self._span = span

    def sent(self, jobs: Sequence[Sent]) -> None:
        queues = {job.queue for job in jobs}
        tenants = {job.tenant for job in jobs}
        definitions = {job.definition_key for job in jobs}
        for name, values in ((DESTINATION, queues), (TENANT, tenants), (DEFINITION, definitions)):
            if len(values) == 1:
                self._span.set_attribute(name, min(values))
        if len(queues) == 1:
            self._span.update_name(f"send {min(queues)}")
        if len(jobs) == 1:
            self._span.set_attribute(MESSAGE, str(jobs[0].id))
        else:
            self._span.set_attribute(BATCH, len(jobs))


class Processing:
    """One attempt."""

    def __init__(self, span: Span) -> None:
        self._span = span
        self.trace = trace_of(span)

    def end(self, outcome: Outcome | None) -> None:
        """`outcome` has no secrets in it any more."""
        self._span.set_attribute(OUTCOME, word_of(outcome))
        if isinstance(outcome, Failed):
            error = outcome.error
            _fail(self._span, str(error.get("type")), str(error.get("message")))
        self._span.end()


def trace_of(span: Span) -> str | None:
    """A span's context as a job carries it."""
    carrier: dict[str, str] = {}
    _w3c.inject(carrier, set_span_in_context(span, context.Context()))
    return trace.received(carrier)


def context_of(carried: str) -> context.Context:
    """The context that a job carries, for OpenTelemetry."""
    return _w3c.extract(trace.headers(carried), context.Context())


def adopt(carried: str) -> None:
    """Go on in the trace that another process began."""
    context.attach(context_of(carried))


def _operation(name: str) -> dict[str, Any]:
    return {SYSTEM: "fairlane", OPERATION: name, OPERATION_TYPE: name}


def _fail(span: Span, kind: str, told: str) -> None:
    span.set_attribute(ERROR, kind)
    span.set_status(Status(StatusCode.ERROR, f"{kind}: {told}"))
