"""enqueue prints the id of a job, and follows it to its end when asked to."""

from collections.abc import Callable
from datetime import datetime, timedelta
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from cli.calling import Call, Floor
from support.clock import Clock

# The job as the API shows it, by the public contract.
CONTRACT = {
    *("id", "short_id", "tenant", "definition_key", "version", "queue", "status", "source"),
    *("source_ref", "priority", "payload", "inputs_hash", "dedupe_key", "concurrency_key"),
    *("correlation_id", "scheduled_for", "queued_at", "started_at", "finished_at"),
    *("attempt_count", "max_attempts", "worker", "phase", "progress", "errors", "last_error"),
    *("retry_of", "created_by"),
}


def test_the_id_is_all_that_is_printed(fairlane: Call, floor: Floor, acme: str) -> None:
    answer = fairlane("enqueue", "a.task", "--tenant", acme)

    assert (answer.status, answer.err) == (0, "")
    job = UUID(answer.out.removesuffix("\n"))
    assert floor.fetch("select tenant, status from fairlane.jobs where id = %s", job) == [
        ("acme", "queued")
    ]


def test_json_is_the_job_as_the_api_shows_it(fairlane: Call, acme: str) -> None:
    job = fairlane(
        *("enqueue", "a.task", "--tenant", acme, "--payload", '{"n": 1, "s": "ü", "f": 0.1}'),
        *("--priority", "-5", "--dedupe-key", "d", "--concurrency-key", "c"),
        *("--correlation-id", "x-1", "--version", "1", "--json"),
    ).json

    assert set(job) >= CONTRACT
    assert job["payload"] == {"n": 1, "s": "ü", "f": 0.1}
    assert (job["priority"], job["dedupe_key"], job["concurrency_key"]) == (-5, "d", "c")
    assert (job["correlation_id"], job["version"], job["source"]) == ("x-1", "1", "manual")
    assert job["deduplicated"] is False
    assert job["created_by"].startswith("cli:")
    assert job["queued_at"].endswith("Z")


def test_a_payload_can_come_from_stdin(fairlane: Call, acme: str) -> None:
    words = ("enqueue", "a.task", "--tenant", acme, "--json", "--payload", "-")

    assert fairlane(*words, stdin=b'{"from": "stdin"}').json["payload"] == {"from": "stdin"}
    assert "not usable as JSON" in fairlane(*words, stdin=b"\xff\xfe").line


def test_a_key_that_a_live_job_has_gives_that_job(fairlane: Call, acme: str) -> None:
    words = ("enqueue", "a.task", "--tenant", acme, "--dedupe-key", "nightly", "--json")
    first, second = fairlane(*words).json, fairlane(*words).json

    assert (first["deduplicated"], second["deduplicated"]) == (False, True)
    assert second["id"] == first["id"]


@pytest.mark.parametrize(
    ("at", "ahead"),
    [("+90s", 90), ("+5m", 300), ("+2h", 7200), ("+1d", 86400)],
)
def test_a_time_from_now_goes_by_the_databases_clock(
    fairlane: Call, acme: str, clock: Clock, at: str, ahead: int
) -> None:
    clock.advance(timedelta(days=400))
    now = clock.freeze()

    job = fairlane("enqueue", "a.task", "--tenant", acme, "--at", at, "--json").json

    assert job["status"] == "scheduled"
    assert datetime.fromisoformat(job["scheduled_for"]) == now + timedelta(seconds=ahead)


def test_a_time_with_its_offset_is_taken_as_it_is(fairlane: Call, acme: str) -> None:
    at = "2040-01-31T18:00:00+02:00"
    job = fairlane("enqueue", "a.task", "--tenant", acme, "--at", at, "--json").json

    assert job["scheduled_for"] == "2040-01-31T16:00:00Z"


def test_a_payload_over_the_limit_is_refused(
    fairlane: Call, floor: Floor, acme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("enqueue", "a.task", "--tenant", acme, "--payload", "-")
    large = b'{"a": "%s"}' % (b"x" * 262_144)

    # It is not even sent.
    monkeypatch.setenv("FAIRLANE_PAYLOAD_LIMIT", "1000")
    here = fairlane(*words, stdin=large)
    assert here.status == 1
    assert "the limit is 1000; store the data elsewhere and pass a reference" in here.line

    # Whoever raises the limit here still meets the database's own.
    monkeypatch.setenv("FAIRLANE_PAYLOAD_LIMIT", "1000000")
    there = fairlane(*words, stdin=large)
    assert there.status == 1
    assert "the limit is 262144" in there.line
    assert floor.one("select count(*) from fairlane.jobs") == 0


def test_a_tenant_over_its_backlog_is_warned_and_served(
    fairlane: Call, floor: Floor, acme: str
) -> None:
    floor.one("select fairlane.set_tenant('acme', '{\"max_backlog\": 0}')")

    answer = fairlane("enqueue", "a.task", "--tenant", acme)

    assert answer.status == 0
    assert UUID(answer.out.strip()).version == 7
    assert answer.err.startswith('fairlane: warning: tenant "acme" has 1 live jobs')


# --wait ---------------------------------------------------------------------

Step = Callable[[], object]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> list[Step]:
    """What happens between one look at the job and the next, a step at a time."""
    steps: list[Step] = []

    async def sleep(_: float) -> None:
        assert steps, "it still waits, and nothing more happens"
        steps.pop(0)()

    monkeypatch.setattr("fairlane.cli.wait.sleep", sleep)
    return steps


class Working:
    """Somebody who takes the next job, says how far it is, and ends it."""

    def __init__(self, floor: Floor) -> None:
        self.floor = floor
        self.worker = floor.worker("w1")
        self.claimed: tuple[UUID, int]

    def claim(self) -> None:
        (self.claimed,) = self.floor.claim(self.worker)

    def progress(self) -> None:
        self.floor.fetch(
            "update fairlane.job set phase = 'rendering', progress = %s where id = %s",
            Jsonb({"done": 3, "total": 10}),
            self.claimed[0],
        )

    def finish(self) -> None:
        self.floor.finish(self.worker, *self.claimed, pages=7)

    def fail(self) -> None:
        self.floor.fail(self.worker, *self.claimed, "no paper")


def test_waiting_tells_what_happens_and_ends_well_with_the_job(
    fairlane: Call, floor: Floor, acme: str, meanwhile: list[Step]
) -> None:
    working = Working(floor)
    meanwhile += [working.claim, working.progress, lambda: None, working.finish]

    answer = fairlane("enqueue", "a.task", "--tenant", acme, "--wait")

    assert answer.status == 0
    assert UUID(answer.out.strip()) == working.claimed[0]
    *told, last = answer.err.splitlines()
    assert told == [
        "queued in default",
        "running on w1, attempt 1 of 3",
        "phase: rendering",
        "progress: [######..............] 3/10 30%",
    ]
    assert last.startswith("succeeded in ")


def test_waiting_goes_on_through_a_retry(
    fairlane: Call, floor: Floor, acme: str, meanwhile: list[Step]
) -> None:
    floor.define("flaky", retry_delays=[0, 60])
    working = Working(floor)
    meanwhile += [working.claim, working.fail, working.claim, working.finish]

    answer = fairlane("enqueue", "flaky", "--tenant", acme, "--wait", "--json")

    assert (answer.status, answer.json["status"]) == (0, "succeeded")
    assert "queued in default, after attempt 1 of 3" in answer.err
    assert "running on w1, attempt 2 of 3" in answer.err


def test_waiting_ends_badly_with_the_job(
    fairlane: Call, floor: Floor, acme: str, meanwhile: list[Step]
) -> None:
    floor.define("once", max_attempts=1)
    working = Working(floor)
    meanwhile += [working.claim, working.fail]

    answer = fairlane("enqueue", "once", "--tenant", acme, "--wait", "--json")

    assert answer.status == 1
    assert answer.json["status"] == "dead_letter"
    assert answer.err.splitlines()[-1].endswith(": no paper")


def test_a_job_with_failed_items_is_no_success(
    fairlane: Call, floor: Floor, acme: str, meanwhile: list[Step]
) -> None:
    working = Working(floor)

    def finish() -> None:
        job, attempt = working.claimed
        floor.one(
            "select fairlane.finish(%s, %s, %s, null, %s::jsonb[])",
            working.worker,
            [job],
            [attempt],
            [Jsonb([{"item": "b.jpg"}, {"item": "c.jpg"}])],
        )

    meanwhile += [working.claim, finish]

    answer = fairlane("enqueue", "a.task", "--tenant", acme, "--wait")

    assert answer.status == 1
    assert answer.err.splitlines()[-1].endswith(": 2 of its items failed")


def test_waiting_for_what_will_not_start_says_why_once(
    fairlane: Call, floor: Floor, acme: str, meanwhile: list[Step]
) -> None:
    meanwhile += [lambda: None] * 20
    meanwhile.append(lambda: floor.one("select fairlane.cancel(id, 'too late') from fairlane.job"))

    answer = fairlane("enqueue", "a.task", "--tenant", acme, "--wait")

    assert answer.status == 1
    assert answer.err.splitlines() == [
        "queued in default",
        'waiting: no live worker takes jobs of queue "default"',
        "canceled: too late",
    ]
