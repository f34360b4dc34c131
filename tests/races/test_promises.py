"""The self-audit among eight processes that do everything at once: it never cries wolf."""

import asyncio
import os
from collections import Counter

import pytest

from races.test_gates import a_crowd
from support.core import Core
from support.racers import processes, race, run_leader, run_producer, run_worker

pytestmark = [pytest.mark.race, pytest.mark.timeout(180)]

SECONDS = float(os.environ.get("FAIRLANE_RACE_SECONDS", "6"))


@pytest.mark.slow
async def test_a_race_breaks_no_promise_and_none_is_said_to_be_broken(
    core: Core, database: str
) -> None:
    requests = await a_crowd(core)
    # The crowd's limits are as new as the race: what started since then must count at once.
    for table in ("tenant", "plan", "queue", "definition"):
        await core.fetch(f"update fairlane.{table} set updated_at = now() - interval '1 hour'")
    broken: list[str] = []
    rounds: Counter[str] = Counter()
    with processes(9) as pool:
        racers = race(pool, 6, run_worker, database, ["default", "bulk"], SECONDS)
        racers += race(pool, 1, run_leader, database, SECONDS)
        racers += race(pool, 2, run_producer, database, requests, SECONDS * 0.8)
        while not all(racer.done() for racer in racers):
            rounds["looks"] += 1
            rows = await core.fetch("select name, seen::text from fairlane.check_promises(100, -1)")
            broken += [f"{row['name']}: {row['seen']}" for row in rows]
            await asyncio.sleep(0.01)
        done: Counter[str] = Counter()
        for racer in racers:
            done.update(racer.result())

    assert broken == []
    assert rounds["looks"] > 20
    assert done["finish"] > 100
    checked = {row[0]: row[1] for row in await core.fetch("select * from fairlane.audit_counts()")}
    assert min(checked.values()) > 20, checked
    await core.assert_books_balance()
