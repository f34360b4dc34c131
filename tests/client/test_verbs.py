"""What one may ask of a job that is there."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from fairlane import Enqueued, Fairlane, JobStatus
from fairlane.errors import (
    IdInvalid,
    JobNotFound,
    PayloadInvalid,
    PayloadTooLarge,
    RequestInvalid,
    WrongState,
)
from fairlane.ids import short_id, uuid7
from support.shop import send_of

Db = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def job(app: Fairlane) -> Enqueued:
    return send_of(app).enqueue_sync(
        tenant="acme", number=7, dedupe_key="k", correlation_id="c-1", max_attempts=1
    )


def claimed(db: Db) -> tuple[UUID, int]:
    worker = uuid4()
    db.execute("select fairlane.register_worker(%s, 'w-1')", [worker])
    [(attempt,)] = db.execute(
        "select attempt from fairlane.claim(%s, 'critical', 1)", [worker]
    ).fetchall()
    return worker, attempt


def bury(db: Db, job: Enqueued) -> None:
    worker, attempt = claimed(db)
    db.execute(
        """select fairlane.fail(%s, %s, %s, '{"message": "no paper"}')""", [worker, job.id, attempt]
    )


def test_a_job_is_found_by_any_form_of_its_id(app: Fairlane, job: Enqueued) -> None:
    found = app.get_sync(job.id)

    assert found == app.get_sync(str(job.id)) == app.get_sync(job.short_id)
    assert found.payload == {"number": 7, "note": ""}
    assert (found.tenant, found.definition_key, found.version) == ("acme", "invoices.send", "1")
    assert (found.status, found.dedupe_key, found.correlation_id) == (JobStatus.QUEUED, "k", "c-1")
    assert found.as_dict()["short_id"] == short_id(job.id) == found.short_id


def test_a_finished_job_tells_its_result(app: Fairlane, db: Db, job: Enqueued) -> None:
    worker, attempt = claimed(db)
    db.execute(
        "select fairlane.finish(%s, %s, %s, %s::jsonb[])", [worker, [job.id], [attempt], ['"paid"']]
    )

    found = app.get_sync(job.id)

    assert (found.status, found.result, found.worker) == (JobStatus.SUCCEEDED, "paid", "w-1")
    assert found.finished_at is not None


def test_what_is_not_there_is_not_found(app: Fairlane, db: Db, job: Enqueued) -> None:
    for look in (app.get_sync, app.cancel_sync, app.retry_sync, app.replay_sync, app.resolve_sync):
        with pytest.raises(JobNotFound, match="is not there"):
            look(uuid7())
    with pytest.raises(IdInvalid):
        app.get_sync("invoice-7")


def test_another_tenants_job_is_not_there(app: Fairlane, db: Db, job: Enqueued) -> None:
    db.execute("select fairlane.create_tenant('other', 'pro')")

    for tenant in ("other", "nobody"):
        with pytest.raises(JobNotFound):
            app.get_sync(job.id, tenant=tenant)
        with pytest.raises(JobNotFound):
            app.cancel_sync(job.id, tenant=tenant)
    assert app.get_sync(job.id, tenant="acme").status is JobStatus.QUEUED


async def test_a_waiting_job_is_canceled_and_run_again_as_a_new_one(
    app: Fairlane, job: Enqueued
) -> None:
    async with app:
        assert await app.cancel(job.short_id, "no longer needed") is JobStatus.CANCELED
        new = await app.retry(job.id, tenant="acme")
        found = await app.get(new)

    assert (found.retry_of, found.status) == (job.id, JobStatus.QUEUED)
    assert found.payload == {"number": 7, "note": ""}


def test_a_running_job_is_asked_to_stop(app: Fairlane, db: Db, job: Enqueued) -> None:
    claimed(db)

    assert app.cancel_sync(job.id) is JobStatus.RUNNING


def test_a_dead_letter_is_replayed_with_another_payload(
    app: Fairlane, db: Db, job: Enqueued
) -> None:
    bury(db, job)
    dead = app.get_sync(job.id)
    assert (dead.status, dead.last_error) == (JobStatus.DEAD_LETTER, {"message": "no paper"})

    assert app.replay_sync(job.id, payload={"number": 8}, notes="paper is in") is JobStatus.QUEUED

    found = app.get_sync(job.id)
    completed = {"number": 8, "note": ""}
    assert (found.status, found.replays, found.payload) == (JobStatus.QUEUED, 1, completed)


def test_a_payload_to_replay_is_checked_like_any_other(
    app: Fairlane, db: Db, job: Enqueued
) -> None:
    bury(db, job)

    with pytest.raises(PayloadInvalid, match="a NUL character at /number"):
        app.replay_sync(job.id, payload={"number": "\0"})
    with pytest.raises(PayloadInvalid, match="must be an object"):
        app.replay_sync(job.id, payload=[])  # type: ignore[arg-type]
    with pytest.raises(PayloadTooLarge, match="the limit is 262144"):
        app.replay_sync(job.id, payload={"number": "x" * 300_000})
    assert app.get_sync(job.id).status is JobStatus.DEAD_LETTER


@pytest.mark.parametrize("verb", ["resolve", "ignore"])
def test_a_dead_letter_is_settled_once(app: Fairlane, db: Db, job: Enqueued, verb: str) -> None:
    bury(db, job)
    settle = {"resolve": app.resolve_sync, "ignore": app.ignore_sync}[verb]

    settle(job.id, notes="dealt with")

    row = db.execute("select status, notes from fairlane.dead_letter").fetchone()
    assert row == ({"resolve": "resolved", "ignore": "ignored"}[verb], "dealt with")
    with pytest.raises(WrongState):
        settle(job.id)


def test_a_verb_in_the_wrong_state_says_which_it_needs(app: Fairlane, job: Enqueued) -> None:
    with pytest.raises(WrongState, match="is queued; to retry it must be succeeded"):
        app.retry_sync(job.id)


def test_text_that_the_database_cannot_store_is_refused(app: Fairlane, job: Enqueued) -> None:
    with pytest.raises(RequestInvalid, match="the database cannot take the request"):
        app.cancel_sync(job.id, "be\0cause")


def test_a_job_can_be_asked_why_it_waits(app: Fairlane, job: Enqueued) -> None:
    why = app.explain_sync(job.id)
    assert (why["status"], why["reason"]) == ("queued", "no_worker")
    with pytest.raises(JobNotFound):
        app.explain_sync(job.id, tenant="another")


def test_jobs_are_listed_newest_first_and_by_page(app: Fairlane, db: Db) -> None:
    db.execute("select fairlane.create_tenant('other', 'pro')")
    send = send_of(app)
    first, second, third = (send.enqueue_sync(tenant="acme", number=n) for n in range(3))
    send.enqueue_sync(tenant="other", number=9)
    app.cancel_sync(second.id)

    listed = app.jobs_sync(tenant="acme", limit=2)
    assert [job.id for job in listed] == [third.id, second.id]
    assert [job.id for job in app.jobs_sync(tenant="acme", before=listed[-1].id)] == [first.id]
    assert [job.id for job in app.jobs_sync(status="canceled")] == [second.id]
    assert app.jobs_sync(definition_key="invoices.send", status=JobStatus.RUNNING) == []
    with pytest.raises(RequestInvalid, match="there are: scheduled, queued"):
        app.jobs_sync(status="done")
    with pytest.raises(RequestInvalid, match="1 or more"):
        app.jobs_sync(limit=0)


def test_a_job_is_waited_for_until_it_has_ended(app: Fairlane, db: Db, job: Enqueued) -> None:
    with pytest.raises(TimeoutError):
        app.wait_for_sync(job.id, timeout=0.05)
    bury(db, job)

    assert app.wait_for_sync(job.short_id, timeout=5).status is JobStatus.DEAD_LETTER
