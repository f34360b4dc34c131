"""What there is has its words: every alert its runbook, every setting its line, every picture its
source."""

import re

import yaml
from docsite import picture
from docsite.reference import configuration, sql

from docs.blocks import ROOT
from fairlane import config
from fairlane.metrics import rules

RUNBOOKS = (ROOT / "docs/operating/runbooks.md").read_text()
ALERTS = (ROOT / "docs/alerts.md").read_text()


async def test_every_alert_has_a_runbook_and_a_link_to_it(database: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(database)
    names = {row["name"] for row in await connection.fetch("select name from fairlane.alert_rule")}
    await connection.close()

    assert names == set(re.findall(r"^## (\w+)$", RUNBOOKS, re.M))
    assert names == set(re.findall(r"runbooks\.md#(\w+)", ALERTS))


def test_every_rule_for_prometheus_has_a_runbook() -> None:
    groups = yaml.safe_load(rules.rules())["groups"]
    names = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}

    assert names == set(re.findall(r"\bFairlane[A-Z]\w+", RUNBOOKS))


def test_every_setting_is_in_the_reference() -> None:
    page = configuration.page()
    assert all(setting.about for setting in config.SETTINGS.values())
    source = "".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    read = set(re.findall(r'"(FAIRLANE_[A-Z_]+[A-Z])"', source))
    given = {  # what commands find in their environment, and what is our own between processes
        *("FAIRLANE_JOB_ID", "FAIRLANE_TENANT", "FAIRLANE_TENANT_ID", "FAIRLANE_ATTEMPT"),
        "FAIRLANE_FENCE",
        *("FAIRLANE_CORRELATION_ID", "FAIRLANE_DEFINITION", "FAIRLANE_VERSION"),
        *("FAIRLANE_DEADLINE", "FAIRLANE_REPORT_FD", "FAIRLANE_SUPERVISOR_PID"),
    }
    assert not {name for name in read - given if f"`{name}`" not in page}


def test_every_stable_function_of_sql_is_in_the_reference() -> None:
    stable = (ROOT / "docs/stability.md").read_text().split("| SQL |")[1].split("|")[0]
    listed = {name for names in sql.VERBS.values() for name in names}
    named = set(re.findall(r"`(\w+)`", stable.partition(";")[0]))
    assert named
    assert named <= listed


def test_the_picture_is_what_its_rule_draws() -> None:
    assert picture.FILE.read_text() == picture.drawn(), "run: python -m docsite.picture"
    fair, first_come = (
        min(job.start for job in picture.run(fair) if job.tenant == "globex")
        for fair in (True, False)
    )
    assert fair < first_come
