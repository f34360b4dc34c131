"""`fairlane worker`: a process that claims jobs and runs them."""

import click

from fairlane.cli.metrics_port import metrics_port_option, with_metrics_port


def queue_slots(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    slots: dict[str, int] = {}
    for value in values:
        name, _, number = value.partition("=")
        if not (name and number.isascii() and number.isdigit() and 0 < int(number) <= 10_000):
            raise click.BadParameter(
                f'"{value}": give a queue and its slots, like default=8', ctx, param
            )
        if name in slots:
            raise click.BadParameter(f'"{name}" is given twice', ctx, param)
        slots[name] = int(number)
    return slots


@click.command()
@click.option(
    "--queue",
    "queues",
    multiple=True,
    callback=queue_slots,
    metavar="NAME=SLOTS",
    help="Serve this queue with so many slots; all queues with their own slots if not given.",
)
@click.option("--processes", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--app", "app_path", metavar="MODULE:APP", help="Where the python jobs are defined.")
@metrics_port_option
def worker(
    queues: dict[str, int], processes: int, app_path: str | None, metrics_port: int | None
) -> int:
    """Claim jobs and run them, until SIGTERM or Ctrl-C."""
    from fairlane import config
    from fairlane.observe.logs import log_to_stderr

    settings = with_metrics_port(config.load(), metrics_port)
    log_to_stderr(settings)
    if app_path is not None:
        refuse_other_than_module_and_app(app_path)

    from fairlane.worker.main import run

    return run(app_path, queues, processes, settings)


def refuse_other_than_module_and_app(app_path: str) -> None:
    module, _, app = app_path.partition(":")
    if not module or not app:
        raise click.BadParameter(
            f'"{app_path}": give MODULE:APP, like shop.jobs:app',
            click.get_current_context(),
            param_hint="--app",
        )
