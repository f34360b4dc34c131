"""`fairlane scheduler`: makes jobs of events and by the clock."""

import click

from fairlane.cli.metrics_port import metrics_port_option, with_metrics_port


@click.command()
@metrics_port_option
def scheduler(metrics_port: int | None) -> int:
    """Make jobs of events and schedules, until SIGTERM or Ctrl-C.

    As many as wanted, on as many machines as wanted: one works, and another takes over within
    seconds.
    """
    from fairlane import config
    from fairlane.observe.logs import log_to_stderr

    settings = with_metrics_port(config.load(), metrics_port)
    log_to_stderr(settings)

    from fairlane.scheduler.main import run

    return run(settings)
