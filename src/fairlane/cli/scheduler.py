"""`fairlane scheduler`: makes jobs of events and by the clock."""

import click


@click.command()
def scheduler() -> int:
    """Make jobs of events and schedules, until SIGTERM or Ctrl-C.

    As many as wanted, on as many machines as wanted: one works, and another takes over within
    seconds.
    """
    from fairlane import config
    from fairlane.cli.logs import log_to_stderr

    settings = config.load()
    log_to_stderr(settings)

    from fairlane.scheduler.main import run

    return run(settings)
