"""Every call answers with a status and at most one line of complaint."""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import psycopg
import pytest

from cli.calling import Call, Floor
from fairlane.cli.main import cli
from support.cluster import Cluster

FAIRLANE = Path(sys.executable).with_name("fairlane")


@pytest.fixture(scope="module")
def shared(cluster: Cluster, template: str) -> Iterator[str]:
    """A database for calls that change nothing, with a tenant `acme` and a definition `a.task`."""
    with cluster.fresh(template) as url, psycopg.connect(url, autocommit=True) as conn:
        floor = Floor(conn)
        floor.define("a.task")
        floor.tenant("acme")
        yield url


@pytest.fixture
def in_vain(call: Call, shared: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Call]:
    """A call that must leave everything as it was."""
    monkeypatch.setenv("FAIRLANE_DATABASE_URL", shared)
    with psycopg.connect(shared, autocommit=True) as conn:
        before = Floor(conn).fetch(EVERYTHING)
        yield call
        assert Floor(conn).fetch(EVERYTHING) == before


EVERYTHING = """
select (select count(*) from fairlane.audit), (select count(*) from fairlane.job),
       (select jsonb_agg(t order by id) from fairlane.tenant t),
       (select jsonb_agg(p order by name) from fairlane.plan p),
       (select jsonb_agg(q order by name) from fairlane.queue q)
"""


def every_command() -> Iterator[list[str]]:
    def below(command: click.Command, words: list[str]) -> Iterator[list[str]]:
        if isinstance(command, click.Group):
            ctx = click.Context(command)
            for name in command.list_commands(ctx):
                found = command.get_command(ctx, name)
                assert found is not None
                yield [*words, name]
                yield from below(found, [*words, name])

    yield from below(cli, [])


def test_the_version_is_told(call: Call) -> None:
    answer = call("--version")

    assert (answer.status, answer.out) == (0, "fairlane 0.1.0\n")


def test_every_command_says_what_it_is_for(call: Call) -> None:
    commands = list(every_command())
    assert ["jobs", "explain"] in commands
    for words in commands:
        answer = call(*words, "--help")
        assert answer.status == 0
        usage, _, rest = answer.out.partition("\n")
        assert usage.startswith(f"Usage: fairlane {' '.join(words)}")
        assert rest.strip(), f"{words} has no help"


def test_every_command_that_shows_or_makes_something_takes_json(call: Call) -> None:
    quiet = {"up", "server", "worker", "scheduler"}
    for words in every_command():
        options = call(*words, "--help").out
        if words[0] in quiet or "COMMAND [ARGS]" in options:
            continue
        assert "--json" in options, words


WRONG_CALLS = {
    "nonsense": "No such command 'nonsense'",
    "jobs": "Missing command",
    "jobs nonsense": "No such command 'nonsense'",
    "jobs list --color": "No such option",
    "jobs list --limit 0": "0 is not in the range 1<=x<=200",
    "jobs list --limit 201": "201 is not in the range 1<=x<=200",
    "jobs list --status lost": "'lost' is not one of 'scheduled'",
    "jobs list --cursor top": '"top" does not come from a list',
    "jobs show": "Missing argument 'JOB_ID'",
    "jobs show 123": '"123" is not an id: give a UUID or a short id of 27 characters',
    "enqueue a.task": "Missing option '--tenant'",
    "enqueue a.task --tenant acme --payload {": "not usable as JSON",
    "enqueue a.task --tenant acme --payload [1]": "a payload is a JSON object",
    'enqueue a.task --tenant acme --payload {"a":"\\u0000"}': "has a NUL character at /a",
    "enqueue a.task --tenant acme --priority high": "'high' is not a valid integer",
    "enqueue a.task --tenant acme --priority 2147483648": "is not in the range",
    "enqueue a.task --tenant acme --at tomorrow": '"tomorrow" is not a time',
    "enqueue a.task --tenant acme --at 2030-01-01T00:00:00": "is not a time",
    "enqueue a.task --tenant acme --at +99999999999d": "is not a time",
    "tenants create Acme!": '"Acme!" is not usable',
    "tenants create other --max-running -1": '"-1": give a whole number of 0 or more, or none',
    "tenants set acme": "nothing to set; give one of --plan, --name",
    "tenants set acme --max-running -5": '"-5": give a whole number of 0 or more, or none',
    "tenants set acme --max-running 2147483648": "give a whole number",
    "tenants set acme --starts-per-minute 0": '"0": give a whole number of 1 or more, or none',
    "tenants set acme --weight 0": "give a number above 0 and up to 1000",
    "tenants set acme --weight nan": "give a number above 0 and up to 1000",
    "plans set pro --max-running -5": '"-5": give a whole number of 0 or more, or none',
    "plans set pro --weight none": "a plan has a weight",
    "queues set bulk --slots 0": "0 is not in the range",
    "queues set bulk --retry-delays 1,-2": "give seconds, like 60,300,900",
    "dead replay": "give one ID, or --all with a filter",
    "dead replay --all --payload {}": "--payload goes with one ID",
    "worker --queue default": "give a queue and its slots, like default=8",
    "worker --queue default=0": "give a queue and its slots",
    "worker --queue bulk=1 --queue bulk=2": '"bulk" is given twice',
    "worker --app shop": '"shop": give MODULE:APP, like shop.jobs:app',
    "up --demo --app shop:app": "--demo brings an app of its own",
    "migrate --check --sql": "give one of --check, --plan and --sql",
}


@pytest.mark.parametrize(("words", "said"), WRONG_CALLS.items())
def test_a_wrong_call_is_refused_in_one_line(in_vain: Call, words: str, said: str) -> None:
    answer = in_vain(*words.split())

    assert answer.status == 2
    assert said in answer.line
    assert "; see: fairlane" in answer.line


FAILURES = {
    "enqueue a.task --tenant nobody": 'tenant "nobody" is unknown; create it with: fairlane',
    "enqueue no.task --tenant acme": 'definition "no.task" is unknown; define it',
    "enqueue a.task --tenant acme --version 9": 'definition "a.task" version 9 is unknown',
    "jobs list --tenant nobody": 'tenant "nobody" is unknown',
    "jobs list --queue slow": 'queue "slow" is unknown; see: fairlane queues list',
    "jobs list --definition no.task": 'definition "no.task" is unknown; see: fairlane definitions',
    "jobs show 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there: the id is wrong, or its",
    "jobs cancel 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there",
    "jobs retry 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there",
    "jobs attempts 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there",
    "jobs explain 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there",
    "dead show 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "there is no dead letter",
    "dead replay 01a1e2a4-06a1-731e-99f9-7ac1e90eec4a": "is not there",
    "dead list --tenant nobody": 'tenant "nobody" is unknown',
    "dead list --queue slow": 'queue "slow" is unknown',
    "dead replay --all --definition no.task": 'definition "no.task" is unknown',
    "tenants show nobody": 'tenant "nobody" is unknown; create it with: fairlane tenants create',
    "tenants set nobody --weight 2": 'tenant "nobody" is unknown',
    "tenants pause nobody": 'tenant "nobody" is unknown',
    "tenants create acme": 'tenant "acme" is there already',
    "tenants create other --plan gold": 'plan "gold" is unknown; there are: free, pro, starter',
    "tenants set acme --plan gold": 'plan "gold" is unknown',
    "plans show gold": 'plan "gold" is unknown; there are: free, pro, starter',
    "queues show slow": 'queue "slow" is unknown; see: fairlane queues list',
    "queues set slow --slots 2": 'queue "slow" is unknown',
    "queues pause slow": 'queue "slow" is unknown',
    "queues create bulk": 'queue "bulk" is there already; change it with: fairlane queues set bulk',
    "definitions show no.task": 'definition "no.task" is unknown; see: fairlane definitions list',
}


@pytest.mark.parametrize(("words", "said"), FAILURES.items())
def test_what_cannot_be_done_is_refused_in_one_line(in_vain: Call, words: str, said: str) -> None:
    answer = in_vain(*words.split())

    assert answer.status == 1
    assert said in answer.line


def test_a_mistyped_short_id_is_told_from_an_unknown_one(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    short = fairlane("enqueue", "a.task", "--tenant", acme, "--json").json["short_id"]
    assert fairlane("jobs", "show", short.lower()).status == 0

    mistyped = short[:10] + ("1" if short[10] != "1" else "2") + short[11:]
    answer = fairlane("jobs", "show", mistyped)

    assert answer.status == 2
    assert "is mistyped: its check symbol does not fit" in answer.line


def test_debug_shows_where_it_went_wrong(fairlane: Call, acme: str) -> None:
    for words in (
        ["--debug", "tenants", "show", "nobody"],
        ["tenants", "show", "nobody", "--debug"],
    ):
        answer = fairlane(*words)
        assert answer.status == 1
        assert answer.err.startswith("Traceback (most recent call last):\n")
        assert 'TenantNotFound: tenant "nobody" is unknown' in answer.err


def test_what_was_not_foreseen_is_one_line_too(
    fairlane: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise ZeroDivisionError("a\nb")

    monkeypatch.setattr("fairlane.cli.session.Session.fetch", broken)

    answer = fairlane("plans", "list")

    assert answer.status == 1
    assert answer.line == "ZeroDivisionError: a b; add --debug to see where"


def test_an_argument_that_is_no_text_is_refused(call: Call) -> None:
    answer = call("enqueue", "a.task", "--tenant", "ac\udcffme")

    assert answer.status == 2
    assert "is not valid UTF-8" in answer.line


# As processes ---------------------------------------------------------------


def test_help_comes_at_once() -> None:
    def seconds() -> float:
        # Of the processor, so that a busy machine does not count.
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([FAIRLANE, "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(4)) < 0.3


def test_the_program_and_the_module_are_the_same(database: str) -> None:
    env = {**os.environ, "FAIRLANE_DATABASE_URL": database}
    answers = [
        subprocess.run([*how, "plans", "list"], env=env, capture_output=True, text=True, check=True)
        for how in ([FAIRLANE], [sys.executable, "-m", "fairlane"])
    ]

    assert answers[0].stdout == answers[1].stdout
    assert "starter" in answers[0].stdout


def test_a_failing_process_exits_with_its_status_and_one_line(
    database: str, cluster: Cluster
) -> None:
    env = {**os.environ, "FAIRLANE_DATABASE_URL": database}
    answer = subprocess.run(
        [FAIRLANE, "tenants", "show", "nobody"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.count("\n") == 1


def test_a_reader_that_goes_away_is_no_accident(database: str) -> None:
    env = {**os.environ, "FAIRLANE_DATABASE_URL": database}
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = subprocess.run(
            [FAIRLANE, "plans", "list"],
            env=env,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)

    assert answer.stderr == b""
    assert answer.returncode == 1
