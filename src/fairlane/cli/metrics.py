"""`fairlane metrics`: what Prometheus and Grafana are told of Fairlane."""

import click

from fairlane.cli import params
from fairlane.cli.render import print_json


@click.group()
def metrics() -> None:
    """Rules for Prometheus and dashboards for Grafana, as this version knows them."""


@metrics.command()
@params.json_option
def rules(as_json: bool) -> None:
    """Print the alerting rules, for rule_files of Prometheus."""
    from fairlane.metrics import rules as found

    if as_json:
        import yaml

        print_json(yaml.safe_load(found.rules()))
        return
    click.echo(found.rules(), nl=False)


@metrics.command()
@click.argument("name", type=click.Choice(["operator", "tenant"]))
@params.json_option
def dashboard(name: str, as_json: bool) -> None:
    """Print a dashboard, for Grafana to import; it is JSON in any case."""
    import json

    from fairlane.metrics.dashboards import DASHBOARDS

    click.echo(json.dumps(DASHBOARDS[name](), indent=2))


@metrics.command("list")
@params.json_option
def list_(as_json: bool) -> None:
    """Print every metric: name, kind, labels, what it is."""
    from fairlane.metrics.catalogue import CATALOGUE

    if as_json:
        from fairlane.cli.shapes import page

        names = ("name", "kind", "labels", "help")
        print_json(page([{each: getattr(m, each) for each in names} for m in CATALOGUE.values()]))
        return
    for metric in CATALOGUE.values():
        labels = ",".join(metric.labels)
        click.echo(f"{metric.name}  {metric.kind}  {labels or '-'}  {metric.help}")
