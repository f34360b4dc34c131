"""--metrics-port, of those that have one."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from fairlane.config import Settings

F = TypeVar("F", bound=Callable[..., Any])

metrics_port_option: Callable[[F], F] = click.option(
    "--metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve /metrics and /healthz on this port; FAIRLANE_METRICS_PORT if not given, else none. "
    "With --processes, each has its own, from here on.",
)


def with_metrics_port(settings: "Settings", port: int | None) -> "Settings":
    return settings if port is None else replace(settings, metrics_port=port)
