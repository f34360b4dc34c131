"""How a long run says that it lives: on stderr, so that stdout holds the table alone."""

import click


def say(text: str) -> None:
    click.echo(text, err=True)
