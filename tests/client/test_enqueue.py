"""Enqueueing with connections of our own: what gets in, what is refused, and how."""

import logging
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from fairlane import Fairlane, JobStatus
from fairlane.errors import (
    BacklogFull,
    DefinitionInactive,
    DefinitionNotFound,
    FairlaneError,
    IdInvalid,
    JobIdTaken,
    PayloadInvalid,
    PayloadTooLarge,
    QueueNotFound,
    RequestInvalid,
    TenantNotFound,
)
from fairlane.ids import short_id, uuid7
from support.clock import Clock
from support.shop import send_of

Db = psycopg.Connection[tuple[Any, ...]]


def column(db: Db, query: str) -> list[Any]:
    return [row[0] for row in db.execute(query.encode()).fetchall()]


async def test_a_task_is_enqueued_with_its_defaults_in_the_payload(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    async with app:
        job = await send.enqueue(tenant="acme", number=7, correlation_id="c-1")

    assert (job.tenant, job.definition_key, job.queue) == ("acme", "invoices.send", "critical")
    assert job.status is JobStatus.QUEUED
    assert job.id.version == 7
    assert column(db, "select payload from fairlane.jobs") == [{"number": 7, "note": ""}]
    assert column(db, "select correlation_id from fairlane.jobs") == ["c-1"]


def test_sync_code_needs_no_event_loop(app: Fairlane, db: Db) -> None:
    send = send_of(app)

    job = send.enqueue_sync(tenant="acme", number=7)

    assert app.get_sync(job.id).payload == {"number": 7, "note": ""}


def test_a_task_is_still_the_function_it_was() -> None:
    app = Fairlane("postgresql://nowhere")

    @app.job("double")
    def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    assert double(4) == 8
    assert (getattr(double, "__name__", None), double.__doc__) == ("double", "Twice as much.")


def test_a_definition_of_another_application_is_enqueued_by_its_key(app: Fairlane, db: Db) -> None:
    db.execute("""select fairlane.define('[{"key": "thumbnails", "queue": "bulk"}]')""")

    job = app.enqueue_sync("thumbnails", {"photo": [1, 2]}, tenant="acme")
    moved = app.enqueue_sync("thumbnails", tenant="acme", queue="default")

    assert (job.queue, moved.queue) == ("bulk", "default")
    assert column(db, "select payload from fairlane.jobs order by id") == [{"photo": [1, 2]}, {}]


def test_the_key_of_a_task_of_ours_has_its_payload_validated_by_it(app: Fairlane, db: Db) -> None:
    app.enqueue_sync("invoices.send", {"number": 7}, tenant="acme")
    with pytest.raises(PayloadInvalid, match="/nubmer: the task has no such parameter"):
        app.enqueue_sync("invoices.send", {"nubmer": 7}, tenant="acme")

    assert column(db, "select payload from fairlane.jobs") == [{"number": 7, "note": ""}]


def test_without_a_version_the_newest_of_ours_is_meant(app: Fairlane, db: Db) -> None:
    for version in ("1.9", "1.10"):

        @app.job("tally", version=version)
        def tally(since: str = version) -> None:
            pass

    app.enqueue_sync("tally", tenant="acme")
    app.enqueue_sync("tally", tenant="acme", version="1.9")

    assert column(db, "select version from fairlane.jobs order by id") == ["1.10", "1.9"]
    assert column(db, "select payload ->> 'since' from fairlane.jobs order by id") == [
        "1.10",
        "1.9",
    ]


# Options ----------------------------------------------------------------------


def test_lower_priority_numbers_go_first_then_the_older(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    for number, priority in [(1, None), (2, 200), (3, 5), (4, None), (5, 5)]:
        send.enqueue_sync(tenant="acme", number=number, priority=priority)
    worker = uuid4()
    db.execute("select fairlane.register_worker(%s, 'w')", [worker])

    claimed = db.execute("select payload from fairlane.claim(%s, 'critical', 9)", [worker])

    assert [row[0]["number"] for row in claimed.fetchall()] == [3, 5, 1, 4, 2]


def test_a_time_ahead_makes_it_scheduled_in_any_zone(app: Fairlane, db: Db, clock: Clock) -> None:
    send = send_of(app)
    now = clock.freeze()
    here = timezone(timedelta(hours=5, minutes=45))
    tomorrow = (now + timedelta(days=1)).astimezone(here)

    ahead = send.enqueue_sync(tenant="acme", number=1, scheduled_for=tomorrow)
    past = send.enqueue_sync(tenant="acme", number=2, scheduled_for=now - timedelta(days=1))
    soon = send.enqueue_sync(tenant="acme", number=3, scheduled_for=timedelta(seconds=90))
    asked = {"definition_key": "invoices.send", "tenant": "acme", "payload": {"number": 4}}
    [said] = app.enqueue_many_sync([{**asked, "scheduled_for": tomorrow.isoformat()}])

    assert [job.status.value for job in (ahead, past, soon)] == ["scheduled", "queued", "scheduled"]
    assert ahead.scheduled_for == said.scheduled_for == tomorrow
    assert ahead.scheduled_for.tzinfo is UTC
    assert soon.scheduled_for == now + timedelta(seconds=90)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"scheduled_for": datetime(2030, 1, 1)}, "without a time zone"),
        ({"scheduled_for": 60}, "must be a datetime or a timedelta, not a int"),
        ({"scheduled_for": timedelta.max}, "the database cannot take the request"),
        ({"priority": "high"}, "priority must be a whole number"),
        ({"priority": 2**31}, "priority must be a whole number"),
        ({"priority": True}, "priority must be a whole number"),
        ({"max_attempts": 0}, "max_attempts must be a whole number from 1"),
        ({"dedupe_key": 7}, "dedupe_key must be a string, not a int"),
        ({"dedupe_key": "k" * 513}, "1 to 512 characters"),
        ({"concurrency_key": "a\0b"}, "concurrency_key has a NUL character"),
        ({"correlation_id": "\ud800"}, "correlation_id has half a character"),
    ],
)
def test_an_option_out_of_range_is_refused_by_name(
    app: Fairlane, db: Db, option: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestInvalid, match=message):
        send_of(app).enqueue_sync(tenant="acme", number=1, **option)

    assert column(db, "select count(*) from fairlane.job") == [0]


def test_a_live_job_with_the_dedupe_key_is_the_answer(app: Fairlane, db: Db) -> None:
    send = send_of(app)

    first = send.enqueue_sync(tenant="acme", number=1, dedupe_key="k")
    second = send.enqueue_sync(tenant="acme", number=2, dedupe_key="k")
    app.cancel_sync(first.id)
    third = send.enqueue_sync(tenant="acme", number=3, dedupe_key="k")

    assert (second.id, second.deduplicated) == (first.id, True)
    assert (third.id == first.id, third.deduplicated) == (False, False)


def test_over_the_backlog_limit_a_warning_is_answered_and_logged_once(
    app: Fairlane, db: Db, caplog: pytest.LogCaptureFixture
) -> None:
    db.execute("select fairlane.set_tenant('acme', '{\"max_backlog\": 2}')")
    send = send_of(app)

    jobs = app.enqueue_many_sync([send.request(tenant="acme", number=n) for n in range(3)])

    sentence = 'tenant "acme" has 3 live jobs, over its limit of 2'
    assert [job.warning for job in jobs] == [sentence] * 3
    assert caplog.record_tuples == [("fairlane", logging.WARNING, sentence)]


def test_a_backlog_limit_that_rejects_is_an_error(app: Fairlane, db: Db) -> None:
    db.execute(
        'select fairlane.set_tenant(\'acme\', \'{"max_backlog": 1, "backlog_policy": "reject"}\')'
    )
    send = send_of(app)
    send.enqueue_sync(tenant="acme", number=1)

    with pytest.raises(BacklogFull, match="its limit is 1; try again when some are done"):
        send.enqueue_sync(tenant="acme", number=2)


# Ids --------------------------------------------------------------------------


def test_an_id_of_the_callers_is_the_same_job_however_often_it_is_sent(
    app: Fairlane, db: Db
) -> None:
    send, job_id = send_of(app), uuid7()

    given: list[UUID | str] = [job_id, str(job_id), short_id(job_id)]
    sent = [send.enqueue_sync(tenant="acme", number=1, id=each) for each in given]

    assert {job.id for job in sent} == {job_id}
    assert [job.deduplicated for job in sent] == [False, False, False]
    assert column(db, "select id from fairlane.jobs") == [job_id]


def test_an_id_that_another_tenant_has_is_refused_without_telling_whose(
    app: Fairlane, db: Db
) -> None:
    db.execute("select fairlane.create_tenant('secretive', 'pro')")
    send = send_of(app)
    live = send.enqueue_sync(tenant="secretive", number=1)
    finished = send.enqueue_sync(tenant="secretive", number=2)
    app.cancel_sync(finished.id)

    for job in (live, finished):
        with pytest.raises(JobIdTaken, match=str(job.id)) as refused:
            send.enqueue_sync(tenant="acme", number=1, id=job.id)
        assert "secretive" not in str(refused.value)


def test_a_mistyped_id_is_refused_before_anything_is_sent(app: Fairlane, db: Db) -> None:
    with pytest.raises(IdInvalid, match="is not an id"):
        send_of(app).enqueue_sync(tenant="acme", number=1, id="job-1")

    assert column(db, "select count(*) from fairlane.job") == [0]


# Many -------------------------------------------------------------------------


def test_a_thousand_go_in_one_statement(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    app.register_sync()

    jobs = app.enqueue_many_sync([send.request(tenant="acme", number=n) for n in range(1000)])

    ids = column(db, "select id from fairlane.jobs order by (payload ->> 'number')::int")
    assert [job.id for job in jobs] == ids
    # One transaction inserted them all.
    assert column(db, "select count(distinct xmin::text) from fairlane.job") == [1]


def test_many_are_enqueued_all_or_none(app: Fairlane, db: Db) -> None:
    send = send_of(app)
    good = send.request(tenant="acme", number=1)

    with pytest.raises(TenantNotFound, match=r'tenant "nobody" is unknown \(item 2\)'):
        app.enqueue_many_sync([good, send.request(tenant="nobody", number=2)])

    assert column(db, "select count(*) from fairlane.job") == [0]


async def test_nothing_to_enqueue_asks_nothing_of_the_database() -> None:
    app = Fairlane("postgresql://nowhere.invalid/none")

    assert await app.enqueue_many([]) == []
    assert app.enqueue_many_sync([]) == []


def test_a_request_without_an_id_is_a_new_job_each_time(app: Fairlane, db: Db) -> None:
    request = send_of(app).request(tenant="acme", number=1)

    jobs = app.enqueue_many_sync([request, request])

    assert jobs[0].id != jobs[1].id
    assert column(db, "select count(*) from fairlane.job") == [2]


def test_what_is_done_to_a_payload_after_it_was_checked_changes_nothing(
    app: Fairlane, db: Db
) -> None:
    request = send_of(app).request(tenant="acme", number=1)
    assert isinstance(request.payload, dict)
    request.payload["number"] = math.nan

    app.enqueue_many_sync([request])

    assert column(db, "select payload from fairlane.jobs") == [{"number": 1, "note": ""}]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"tenant": "acme"}, "needs a definition_key"),
        ({"definition_key": "invoices.send"}, "needs a tenant"),
        ({"tenant": "acme", "definition_key": "x", "prio": 1}, 'a request has no "prio"'),
        ({"tenant": "acme", "definition_key": "x", "body": b"{}"}, 'a request has no "body"'),
        ({"tenant": 7, "definition_key": "x"}, "tenant must be a string, not a int"),
        (
            {"tenant": "acme", "definition_key": "x", "scheduled_for": "soon"},
            'scheduled_for is "soon"; give a time like',
        ),
        (["acme", "x"], "a Request or a dict, not a list"),
    ],
)
def test_an_item_that_is_no_request_is_refused(item: Any, message: str) -> None:
    with pytest.raises(RequestInvalid, match=message):
        Fairlane("postgresql://nowhere").enqueue_many_sync([item])


# Refusals ---------------------------------------------------------------------


def test_an_unknown_tenant_is_refused_and_told_what_to_do(app: Fairlane) -> None:
    with pytest.raises(TenantNotFound) as refused:
        send_of(app).enqueue_sync(tenant="nobody", number=1)

    assert str(refused.value) == (
        'tenant "nobody" is unknown; create it with: fairlane tenants create nobody'
    )


def test_an_unknown_definition_version_or_queue_is_refused(app: Fairlane, db: Db) -> None:
    with pytest.raises(DefinitionNotFound, match='definition "thumbnails" is unknown'):
        app.enqueue_sync("thumbnails", tenant="acme")
    with pytest.raises(DefinitionNotFound, match="version 2 is unknown"):
        app.enqueue_sync("invoices.send", {"number": 1}, tenant="acme", version="2")
    with pytest.raises(QueueNotFound, match='queue "slow" is unknown'):
        app.enqueue_sync("invoices.send", {"number": 1}, tenant="acme", queue="slow")


def test_a_definition_that_was_switched_off_takes_no_jobs(app: Fairlane, db: Db) -> None:
    app.register_sync()
    db.execute("update fairlane.definition set is_active = false")

    with pytest.raises(DefinitionInactive, match="version 1 is not active"):
        send_of(app).enqueue_sync(tenant="acme", number=1)


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ({"x": math.nan}, "has nan at /x; JSON has no such number"),
        ({"x": [1, {"y": -math.inf}]}, "has -inf at /x/1/y"),
        ({"x": "a\0b"}, "has a NUL character at /x; PostgreSQL cannot store it"),
        ({"a\0b": 1}, "has a NUL character at"),
        ({"x": "\udc80"}, "half a character"),
        ({1: 2}, "the key 1"),
        ({"x": datetime(2030, 1, 1, tzinfo=UTC)}, "has a datetime at /x"),
        ({"x": {1, 2}}, "has a set at /x"),
        ({"x": 10**5000}, "a number of more than 1000 digits"),
        ([1], "is a list; it must be an object"),
        ([], "is a list; it must be an object"),
        ("text", "is a str; it must be an object"),
        (0, "is a int; it must be an object"),
    ],
)
def test_a_payload_that_cannot_be_stored_is_refused_before_anything_is_sent(
    payload: Any, message: str
) -> None:
    app = Fairlane("postgresql://nowhere.invalid/none")

    with pytest.raises(PayloadInvalid, match=message) as refused:
        app.enqueue_sync("thumbnails", payload, tenant="acme")

    assert '"thumbnails"' in str(refused.value)


@pytest.mark.parametrize("of_ours", [False, True])
def test_a_payload_over_the_limit_is_refused_before_anything_is_sent(of_ours: bool) -> None:
    app = Fairlane("postgresql://nowhere.invalid/none")
    if of_ours:

        @app.job("thumbnails")
        def thumbnails(photo: str) -> None:
            pass

    with pytest.raises(PayloadTooLarge, match="has 262157 bytes, the limit is 262144; store"):
        app.enqueue_sync("thumbnails", {"photo": "x" * 262_145}, tenant="acme")


def test_every_refusal_is_one_line(app: Fairlane, db: Db) -> None:
    asked: list[tuple[dict[str, Any], str]] = [
        ({"number": "x", "no": 1}, "acme"),
        ({"number": 1}, "nobody"),
    ]
    for payload, tenant in asked:
        with pytest.raises(FairlaneError) as refused:
            app.enqueue_sync("invoices.send", payload, tenant=tenant)
        assert "\n" not in str(refused.value)
