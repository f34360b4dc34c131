"""The job exists if and only if the caller's transaction commits, whatever the driver."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from fairlane import Fairlane, JobStatus, Task
from fairlane.errors import DefinitionInactive, TenantNotFound
from support.clock import Clock
from support.drivers import Begin, Undo

Db = psycopg.Connection[tuple[Any, ...]]
Send = Task[..., None]


def jobs(db: Db) -> list[Any]:
    """The numbers of the invoices that jobs will send."""
    rows = db.execute("select payload ->> 'number' from fairlane.jobs order by id").fetchall()
    return [int(row[0]) for row in rows]


def invoices(db: Db) -> list[Any]:
    return [row[0] for row in db.execute("select number from invoice order by number").fetchall()]


def test_a_job_exists_once_the_transaction_commits(begin: Begin, db: Db, send: Send) -> None:
    transaction = begin()

    job = transaction.enqueue(
        send, tenant="acme", number=7, note='caf\u00e9 %s $1 :x "\\', lines=[{"a/b": [1.5, None]}]
    )
    assert jobs(db) == []
    transaction.commit()

    assert (job.status, job.queue, job.deduplicated) == (JobStatus.QUEUED, "default", False)
    rows = db.execute("select id, tenant, payload from fairlane.jobs").fetchall()
    payload = {"number": 7, "note": 'caf\u00e9 %s $1 :x "\\', "lines": [{"a/b": [1.5, None]}]}
    assert rows == [(job.id, "acme", payload)]


def test_a_job_of_a_transaction_that_rolled_back_never_was(
    begin: Begin, db: Db, send: Send
) -> None:
    transaction = begin()

    transaction.enqueue(send, tenant="acme", number=7)
    transaction.rollback()

    assert jobs(db) == []
    assert db.execute("select count(*) from fairlane.arrival").fetchone() == (0,)


def test_a_job_goes_with_its_savepoint(begin: Begin, db: Db, send: Send) -> None:
    transaction = begin()

    transaction.enqueue(send, tenant="acme", number=1)
    with suppress(Undo), transaction.savepoint():
        transaction.enqueue(send, tenant="acme", number=2)
        raise Undo
    transaction.enqueue(send, tenant="acme", number=3)
    transaction.commit()

    assert jobs(db) == [1, 3]


def test_the_applications_rows_and_its_job_come_together_or_not_at_all(
    begin: Begin, db: Db, send: Send
) -> None:
    transaction = begin()

    transaction.execute("insert into invoice values (1)")
    transaction.enqueue(send, tenant="acme", number=1)
    transaction.commit()
    assert (invoices(db), jobs(db)) == ([1], [1])

    transaction.again()
    transaction.execute("insert into invoice values (2)")
    transaction.enqueue(send, tenant="acme", number=2)
    with pytest.raises(Exception, match="duplicate key"):
        transaction.execute("insert into invoice values (1)")
    transaction.rollback()
    assert (invoices(db), jobs(db)) == ([1], [1])


def test_what_the_application_set_on_its_connection_does_not_matter(
    begin: Begin, db: Db, send: Send
) -> None:
    transaction = begin(dressed=True)

    first = transaction.enqueue(send, tenant="acme", number=1, lines=[{"x": "y"}])
    transaction.commit()

    rows = db.execute("select id, jsonb_typeof(payload) from fairlane.job").fetchall()
    assert rows == [(first.id, "object")]


def test_a_second_job_with_the_same_key_is_the_first(begin: Begin, db: Db, send: Send) -> None:
    transaction = begin()

    first = transaction.enqueue(send, tenant="acme", number=1, dedupe_key="invoice-1")
    second = transaction.enqueue(send, tenant="acme", number=1, dedupe_key="invoice-1")
    transaction.commit()

    assert (first.deduplicated, second.deduplicated) == (False, True)
    assert second.id == first.id
    assert jobs(db) == [1]


def test_a_refusal_comes_as_our_error_and_the_caller_can_roll_back(
    begin: Begin, db: Db, send: Send
) -> None:
    transaction = begin()

    transaction.execute("insert into invoice values (1)")
    with pytest.raises(TenantNotFound) as refused:
        transaction.enqueue(send, tenant="nobody", number=1)
    transaction.rollback()

    assert str(refused.value) == (
        'tenant "nobody" is unknown; create it with: fairlane tenants create nobody'
    )
    transaction.again()
    transaction.enqueue(send, tenant="acme", number=2)
    transaction.commit()
    assert (invoices(db), jobs(db)) == ([], [2])


def test_an_error_that_is_not_about_the_job_stays_the_drivers_own(begin: Begin, send: Send) -> None:
    transaction = begin()

    with pytest.raises(Exception, match="division by zero"):
        transaction.execute("select 1 / 0")
    with pytest.raises(Exception, match="current transaction is aborted") as raised:
        transaction.enqueue(send, tenant="acme", number=1)

    assert not type(raised.value).__module__.startswith("fairlane")
    transaction.rollback()


def test_many_go_in_one_statement_and_answer_in_order(
    begin: Begin, db: Db, app: Fairlane, send: Send
) -> None:
    transaction = begin()
    items: list[Any] = [send.request(tenant="acme", number=number) for number in range(20)]
    items.append({"definition_key": "invoices.send", "tenant": "acme", "payload": {"number": 20}})

    answers = transaction.enqueue_many(app, items)
    transaction.commit()

    assert jobs(db) == list(range(21))
    ids = db.execute("select id from fairlane.jobs order by id").fetchall()
    assert [answer.id for answer in answers] == [row[0] for row in ids]


def test_a_delay_counts_from_the_databases_clock(
    begin: Begin, db: Db, send: Send, clock: Clock
) -> None:
    clock.advance(timedelta(days=400))
    now = clock.freeze()
    transaction = begin()

    job = transaction.enqueue(send, tenant="acme", number=1, scheduled_for=timedelta(hours=1))
    transaction.commit()

    assert (job.status, job.scheduled_for) == (JobStatus.SCHEDULED, now + timedelta(hours=1))
    assert db.execute("select scheduled_for from fairlane.job").fetchall() == [
        (now + timedelta(hours=1),)
    ]


def test_without_a_database_of_its_own_the_app_defines_its_tasks_in_the_transaction(
    begin: Begin, db: Db, homeless: Fairlane
) -> None:
    send = _send_of(homeless)
    transaction = begin()

    transaction.enqueue(send, tenant="acme", number=1)
    assert _definitions(db) == []
    transaction.rollback()
    assert _definitions(db) == []

    # What was rolled back is defined again.
    transaction.again()
    transaction.enqueue(send, tenant="acme", number=2)
    transaction.commit()
    assert (jobs(db), _definitions(db)) == ([2], ["invoices.send"])


def test_a_connection_to_another_database_than_the_apps_own_is_as_good(
    begin: Begin, db: Db, elsewhere: Fairlane
) -> None:
    send = _send_of(elsewhere)
    transaction = begin()

    transaction.enqueue(send, tenant="acme", number=1)
    transaction.commit()

    assert (jobs(db), _definitions(db)) == ([1], ["invoices.send"])


def test_a_definition_that_was_switched_off_is_not_switched_on_by_an_enqueue(
    begin: Begin, db: Db, send: Send
) -> None:
    transaction = begin()
    transaction.enqueue(send, tenant="acme", number=1)
    transaction.commit()
    db.execute("update fairlane.definition set is_active = false")

    transaction.again()
    with pytest.raises(DefinitionInactive, match="version 1 is not active"):
        transaction.enqueue(send, tenant="acme", number=2)
    transaction.rollback()

    assert jobs(db) == [1]


def _send_of(app: Fairlane) -> Send:
    @app.job("invoices.send")
    def send(number: int) -> None:
        pass

    return send


def _definitions(db: Db) -> list[Any]:
    return [row[0] for row in db.execute("select key from fairlane.definition").fetchall()]
