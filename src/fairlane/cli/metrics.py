"""`fairlane metrics`: what Prometheus and Grafana are told of Fairlane."""

import click


@click.group()
def metrics() -> None:
    """Rules for Prometheus and dashboards for Grafana, as this version knows them."""


@metrics.command()
def rules() -> None:
    """Print the alerting rules, for rule_files of Prometheus."""
    from fairlane.metrics import rules as found

    click.echo(found.rules(), nl=False)


@metrics.command()
@click.argument("name", type=click.Choice(["operator", "tenant"]))
def dashboard(name: str) -> None:
    """Print a dashboard, for Grafana to import."""
    import json

    from fairlane.metrics.dashboards import DASHBOARDS

    click.echo(json.dumps(DASHBOARDS[name](), indent=2))


@metrics.command("list")
def list_() -> None:
    """Print every metric: name, kind, labels, what it is."""
    from fairlane.metrics.catalogue import CATALOGUE

    for metric in CATALOGUE.values():
        labels = ",".join(metric.labels)
        click.echo(f"{metric.name}  {metric.kind}  {labels or '-'}  {metric.help}")
