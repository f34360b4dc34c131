"""Exactly one job per firing and per event and trigger, whatever happens to whoever schedules."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import asyncpg
import pytest

from fairlane.scheduler.scheduler import Scheduler
from scheduler.stage import Stage
from support.clock import Clock
from support.crontab import Crontab
from support.workers import Fleet, Process, until

START = datetime(2026, 10, 24, 20, 0, 30, tzinfo=UTC)  # Berlin's clocks go back in the night
DEATHS = 200
CRONS = [
    ("*/10 * * * *", "Europe/Berlin"),
    ("0 * * * *", "America/New_York"),
    ("30 2 * * *", "Europe/Berlin"),
    ("15,45 1-4 * * *", "Europe/Berlin"),
    ("*/7 2 * * *", "Europe/Berlin"),
    ("0 0 L * *", "Australia/Lord_Howe"),
]


@pytest.fixture
def clock(database: str) -> Iterator[Clock]:
    with Clock.of(database) as found:
        found.advance(START - found.freeze())
        yield found


class Death(ConnectionError):
    """Nobody is there any more to hear the answer."""


class Mortal(asyncpg.Connection):
    """A connection whose owner dies at a statement: before it is sent, or when it is done and
    before anybody knows. BEGIN and COMMIT are statements too."""

    left = 0
    after = False

    async def fetch(self, query: str, *args: Any, **options: Any) -> list[Any]:
        await self._count()
        rows: list[Any] = await super().fetch(query, *args, **options)
        self._die_if_done()
        return rows

    async def execute(self, query: str, *args: Any, **options: Any) -> str:
        await self._count()
        status: str = await super().execute(query, *args, **options)
        self._die_if_done()
        return status

    async def _count(self) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            self._die()

    def _die_if_done(self) -> None:
        if self.left == 0:
            self._die()

    def _die(self) -> None:
        self.terminate()
        raise Death


class Lives:
    """Schedulers one after the other, each for so many statements."""

    def __init__(self, url: str, chance: random.Random) -> None:
        self.url = url
        self.chance = chance
        self.deaths: Counter[str] = Counter()

    async def live(self) -> None:
        """Work until there is nothing to do, or until death."""
        connection = await asyncpg.connect(self.url, connection_class=Mortal)
        assert isinstance(connection, Mortal)
        # The lease of whoever died before has ended.
        await connection.execute("select fairlane.stop_scheduling(holder) from fairlane.scheduler")
        connection.left = self.chance.randrange(1, 30)
        connection.after = self.chance.random() < 0.5
        scheduler = Scheduler(self.url)
        try:
            while await scheduler.tick(connection):
                pass
        except (Death, asyncpg.InterfaceError):
            # The blocks that it was in find their connection gone on the way out.
            assert connection.is_closed()
            self.deaths["after" if connection.after else "before"] += 1
            await self._until_gone()
        else:
            connection.left = 0
            await connection.close()

    async def _until_gone(self) -> None:
        """The server ends the transaction of a dead client when it notices; locks last as long."""
        watch = await asyncpg.connect(self.url)
        try:
            while await watch.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and state like 'idle in transaction%'"
            ):
                await asyncio.sleep(0.001)
        finally:
            await watch.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
async def test_two_hundred_deaths_lose_nothing_and_double_nothing(
    stage: Stage, clock: Clock, database: str
) -> None:
    chance = random.Random(20261024)
    triggers = [
        await stage.at(
            label=f"t{n}", cron_expr=cron, timezone=zone, missed="all",
            payload_template={"at": "{{schedule.time}}"},
        )
        for n, (cron, zone) in enumerate(CRONS)
    ]  # fmt: skip
    takers = [
        await stage.on(label=f"e{n}", payload_template={"n": "{{event.n}}"}) for n in range(3)
    ]
    deduped = await stage.on(label="d", dedupe_window_seconds=3600, payload_template={"d": 1})
    lives = Lives(database, chance)
    emitted = 0
    while lives.deaths.total() < DEATHS:
        clock.advance(minutes=chance.choice((1, 5, 10, 20)))
        for _ in range(chance.randrange(1, 6)):
            emitted += 1
            await stage.emit({"n": emitted})
        for _ in range(2):
            await lives.live()
    await stage.core.fetch("select fairlane.stop_scheduling(holder) from fairlane.scheduler")
    await stage.work()

    assert min(lives.deaths["before"], lives.deaths["after"]) > DEATHS // 4
    now = clock.now()
    for trigger, (cron, zone) in zip(triggers, CRONS, strict=True):
        expected = list(Crontab(cron).walk(zone, START, now))
        assert await stage.times(trigger) == expected, cron
        made = [job for job in await stage.jobs() if job["source_ref"] == str(trigger.id)]
        assert Counter(job["payload"]["at"] for job in made) == Counter(
            each.strftime("%Y-%m-%dT%H:%M:%SZ") for each in expected
        )
    for taker in takers:
        made = [job for job in await stage.jobs() if job["created_by"] == f"trigger:{taker.id}"]
        assert sorted(job["payload"]["n"] for job in made) == list(range(1, emitted + 1))
        assert len(await stage.deliveries(taker)) == emitted
    kept = Counter(each["status"] for each in await stage.deliveries(deduped))
    hours = (now - START) // timedelta(hours=1) + 1
    assert kept["enqueued"] <= hours
    assert kept["enqueued"] + kept["deduped"] == emitted
    live = {job["id"] for job in await stage.jobs()}
    assert all(each["job_id"] in live for each in await stage.deliveries())
    await stage.core.assert_books_balance()


def start(fleet: Fleet) -> Process:
    log = fleet.folder / f"scheduler-{len(fleet.processes)}.log"
    process = Process(fleet.url, ["scheduler"], log, {})
    fleet.processes.append(process)
    process.until_said("is ready")
    return process


def a_trigger(fleet: Fleet, **fields: str) -> None:
    columns = {"tenant": "acme", "definition_key": "a.task", "label": "t", **fields}
    tenant = columns.pop("tenant")
    from psycopg.types.json import Jsonb

    fleet.db.execute("select fairlane.create_trigger(%s, %s)", [tenant, Jsonb(columns)])


def jobs(fleet: Fleet) -> int:
    return int(fleet.ask("select count(*) from fairlane.job"))


def emit(fleet: Fleet, number: int) -> None:
    """So many events at once: more than one batch of them keeps two connections busy."""
    fleet.db.execute(
        "select count(*) from generate_series(1, %s::int) n,"
        " lateral fairlane.emit('acme', 'told', jsonb_build_object('n', n))",
        [number],
    )


@pytest.fixture
def prepared(fleet: Fleet) -> Fleet:
    fleet.db.execute("""select fairlane.define('[{"key": "a.task"}]')""")
    return fleet


def test_a_scheduler_takes_events_as_they_come_and_stops_cleanly(prepared: Fleet) -> None:
    a_trigger(prepared, trigger_type="event", event_name="told")
    process = start(prepared)
    process.until_said("this process schedules now")
    emit(prepared, 1)
    until(lambda: jobs(prepared) == 1, "the job of the event")
    assert process.stop() == 0
    assert prepared.ask("select holder is null from fairlane.scheduler")


def test_a_schedule_is_fired_by_a_scheduler(prepared: Fleet) -> None:
    a_trigger(
        prepared, trigger_type="schedule", cron_expr="* * * * *", timezone="UTC",
        due_at="-infinity",
    )  # fmt: skip
    start(prepared)
    planned = "select next_at is not null from fairlane.trigger where chore is null"
    until(lambda: prepared.ask(planned), "a plan")
    prepared.db.execute("update fairlane_test.clock set now_offset = now_offset + '1 minute'")
    until(lambda: jobs(prepared) >= 1, "the job of the minute")
    assert prepared.ask("select count(*) from fairlane.firing where job_id is not null") == jobs(
        prepared
    )


@pytest.mark.slow
@pytest.mark.fault
def test_killed_leaders_are_followed_and_every_event_makes_one_job(prepared: Fleet) -> None:
    a_trigger(prepared, trigger_type="event", event_name="told")
    processes = [start(prepared) for _ in range(3)]
    emitted = 0
    for _ in range(6):
        until(lambda: any(map(leads, processes)), "a leader")
        leader = next(process for process in processes if leads(process))
        emit(prepared, 1500)
        emitted += 1500
        until(partial(has_more_than, prepared, emitted - 1500), "some of them")
        os.kill(leader.pid, signal.SIGKILL)
        leader.popen.wait()
        processes.remove(leader)
        processes.append(start(prepared))
    until(lambda: not prepared.ask("select count(*) from fairlane.emission"), "all dispatched")
    assert jobs(prepared) == emitted
    assert prepared.ask("select count(*) from fairlane.delivery") == emitted
    assert all(process.stop() == 0 for process in processes)


def has_more_than(fleet: Fleet, number: int) -> bool:
    return jobs(fleet) > number


def leads(process: Process) -> bool:
    text = process.log.read_text(errors="replace")
    return text.rfind("this process schedules now") > text.rfind("another schedules now")
