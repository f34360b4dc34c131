"""The reference, made from the code each time the site is built, so that it cannot go stale."""

from docsite.reference import commands, configuration, http, metrics, python, sql

PAGES = {
    "reference/python.md": python.page,
    "reference/sql.md": sql.page,
    "reference/cli.md": commands.page,
    "reference/http.md": http.page,
    "reference/configuration.md": configuration.page,
    "reference/metrics.md": metrics.page,
}
