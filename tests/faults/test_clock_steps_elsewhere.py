"""The scheduler's own clock jumps by an hour, or the server's: the database's clock decides."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import asyncpg
import httpx2
import psycopg
import pytest

from fairlane.access import tokens
from fairlane.access.roles import Role
from faults.scene import scene
from faults.test_api import DEFINE, serving
from support.clock import Clock
from support.ports import free_port
from support.workers import Fleet, Process, fleet_of, until

pytestmark = [pytest.mark.fault, pytest.mark.timeout(180)]

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

steps = pytest.mark.parametrize(
    "step",
    [
        pytest.param(HOUR, marks=pytest.mark.scene),
        pytest.param(-HOUR, marks=pytest.mark.scene_long),
    ],
)


def named(whose: str, step: timedelta) -> str:
    return f"clock_step_of_{whose}_{'ahead' if step > timedelta(0) else 'back'}"


def is_off_by(step: timedelta, seen: datetime) -> bool:
    return abs(seen - datetime.now(UTC) - step) < MINUTE


# Times of a schedule that it was to have by now, and that it has.
DUE = "select array(select generate_series(%s::timestamptz, fairlane.clock(), '1 minute'))"
MADE = """
select array(select f.scheduled_for from fairlane.firing f join fairlane.jobs j on j.id = f.job_id
              where f.status = 'enqueued' order by 1)
"""


def goes_on(fleet: Fleet, clock: Clock, first: datetime) -> None:
    """Some minutes pass, and each has its job."""
    for _ in range(3):
        clock.advance(minutes=1)
        until(lambda: fleet.ask(MADE) == fleet.ask(DUE, first), "the job of the minute")


@steps
def test_a_scheduler_whose_clock_jumps_fires_each_time_once(
    database: str, clock: Clock, tmp_path: Path, wall_clock: str, step: timedelta
) -> None:
    offset = tmp_path / "offset"
    offset.write_text("+0")
    faked = {
        "LD_PRELOAD": wall_clock,
        "WALL_CLOCK_OFF_BY": str(offset),
        "FAIRLANE_LOG_FORMAT": "json",
    }
    with scene(named("scheduler", step)) as played, fleet_of(database, tmp_path) as fleet:

        def scheduler(**environment: str) -> Process:
            log = tmp_path / f"scheduler-{len(fleet.processes)}.log"
            fleet.processes.append(Process(database, ["scheduler"], log, environment))
            fleet.processes[-1].until_said("this process schedules now")
            return fleet.processes[-1]

        fleet.db.execute("""
            select fairlane.define('[{"key": "a.task"}]');
            select fairlane.create_trigger('acme', '{
              "label": "t", "definition_key": "a.task", "trigger_type": "schedule",
              "cron_expr": "* * * * *", "timezone": "UTC", "missed": "all",
              "due_at": "-infinity"}')
            """)
        victim = scheduler(**faked)
        first = until(
            lambda: fleet.ask("select next_at from fairlane.trigger where chore is null"), "a plan"
        )
        goes_on(fleet, clock, first)
        offset.write_text(f"{step.total_seconds():+.0f}")
        goes_on(fleet, clock, first)
        victim.stop()
        last = json.loads(victim.log.read_text().splitlines()[-1])
        played.injected += is_off_by(step, datetime.fromisoformat(last["at"]))
        # Another takes over, whose clock is right.
        scheduler()
        goes_on(fleet, clock, first)
        due, made = fleet.ask(DUE, first), fleet.ask(MADE)
        played.operations += len(made)
        played.check("none is missing", [at for at in due if at not in made])
        played.check("none came before its time", [at for at in made if at not in due])
        played.check("each came once", len(made) != len(set(made)))
        jobs = fleet.ask("select count(*) from fairlane.jobs")
        played.check("and made one job", [jobs] if jobs != len(made) else [])


@pytest.mark.scene_long
@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_server_whose_clock_jumps_takes_jobs_and_tokens_by_the_databases(
    database: str,
    tmp_path: Path,
    wall_clock: str,
    step: timedelta,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    offset = tmp_path / "offset"
    offset.write_text("+0")
    monkeypatch.setenv("WALL_CLOCK_OFF_BY", str(offset))
    monkeypatch.setenv("LD_PRELOAD", wall_clock)
    port = free_port()
    with (
        scene(named("server", step)) as played,
        psycopg.connect(database, autocommit=True) as db,
        serving(database, port, tmp_path),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=10) as http,
    ):
        db.execute(DEFINE)
        token = asyncio.run(a_token(database, lasts=HOUR / 2))
        http.headers["Authorization"] = f"Bearer {token}"
        offset.write_text(f"{step.total_seconds():+.0f}")
        until(
            lambda: is_off_by(step, parsedate_to_datetime(http.get("/jobs").headers["date"])),
            "its clock has jumped",
        )
        played.injected += 1
        body = {"definition_key": "a.task", "payload": {}}
        later = (datetime.now(UTC) + HOUR / 2).isoformat()
        answers = [http.post("/jobs", json={**body, **at}) for at in ({}, {"scheduled_for": later})]
        played.operations += len(answers)
        refused = [each.text for each in answers if not each.is_success]
        played.check("a token of half an hour is good", refused)
        found = db.execute(
            "select status, created_at - clock_timestamp() from fairlane.jobs order by 1"
        ).fetchall()
        statuses = [status for status, _ in found]
        played.check(
            "what is due waits for a worker, and what is not for its time",
            statuses if statuses != ["queued", "scheduled"] else [],
        )
        played.check("each came when it came", [off for _, off in found if abs(off) > MINUTE])


async def a_token(url: str, lasts: timedelta) -> str:
    conn = await asyncpg.connect(url)
    try:
        made = await tokens.create(conn, Role("member"), tenant="acme", expires_in=lasts)
    finally:
        await conn.close()
    return made.token
