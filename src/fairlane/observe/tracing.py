"""Whether traces are on: whether the application has set a provider of tracers, or the process has,
because the variables of OpenTelemetry asked for it (see exporting.py). Until then nothing of
OpenTelemetry is imported, and asking costs a look into a dict."""

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlane.observe.spans import Spans

_made: "tuple[Any, Spans] | None" = None


def spans() -> "Spans | None":
    """What makes spans, if anybody wants them."""
    api: Any = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    global _made
    provider = api.get_tracer_provider()
    if _made is not None and _made[0] is provider:
        return _made[1]
    if isinstance(provider, api.ProxyTracerProvider):
        return None  # imported, by whomever, and not set up
    from fairlane.observe.spans import Spans

    _made = (provider, Spans(provider))
    return _made[1]
