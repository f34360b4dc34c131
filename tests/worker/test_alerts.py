"""News of alerts on its way out: by a real worker, to a receiver and a mail server that fail."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import FastAPI, Request, Response

from fairlane.executors.http.signing import PREFIX, secret_for
from support.appserver import serving
from support.clock import Clock
from support.smtp import mail_server
from support.workers import Fleet, Process, until

KEY = "the installation's key"
PATIENT = "3600"  # the clock is moved under it


class Receiver:
    """Fails twice, then takes it."""

    def __init__(self, failing: int = 2) -> None:
        self.failing = failing
        self.calls: list[tuple[dict[str, str], bytes]] = []
        self.app = FastAPI(openapi_url=None)

        @self.app.post("/hook")
        async def hook(request: Request) -> Response:
            self.calls.append((dict(request.headers), await request.body()))
            return Response(status_code=503 if len(self.calls) <= self.failing else 204)

    @property
    def taken(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.calls[self.failing :]]


def verify(headers: dict[str, str], body: bytes, receiver: str) -> None:
    """As a receiver does by Standard Webhooks."""
    key = base64.b64decode(secret_for(receiver, KEY).removeprefix(PREFIX))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert f"v1,{expected}" in headers["webhook-signature"].split()


def a_dead_letter(fleet: Fleet) -> Any:
    """What fires `dead_letters` once its threshold is 0."""
    fleet.db.execute("update fairlane.alert_rule set is_enabled = name = 'dead_letters'")
    fleet.ask("select fairlane.set_alert_rule('dead_letters', '{\"threshold\": 0}')")
    fleet.ask('select fairlane.define(\'[{"key": "gone", "executor": "command"}]\')')
    return fleet.ask(
        "insert into fairlane.dead_letter (id, tenant_id, definition_id, queue, reason, priority, "
        "payload, scheduled_for, created_at, died_at, attempt, forgiven, lost, max_attempts, "
        "source, replays) select gen_random_uuid(), t.id, d.id, 'default', 'attempts', 100, '{}', "
        "now(), now(), now(), 1, 0, 0, 1, 'manual', 0 from fairlane.tenant t, "
        "fairlane.definition d where t.slug = 'acme' and d.key = 'gone' returning id"
    )


def channel(fleet: Fleet, name: str, kind: str, **settings: Any) -> None:
    changes = json.dumps({"kind": kind, "settings": settings})
    fleet.ask("select fairlane.set_alert_channel(%s, %s)", name, changes)


def retries(fleet: Fleet, clock: Clock, seen: Callable[[], int], count: int) -> None:
    """Let the time between two attempts pass, and wait for the next one."""
    waits = "select count(*) from fairlane.job where status = 'scheduled'"
    for number in range(2, count + 1):
        until(lambda: fleet.ask(waits), "it waits for its next attempt")
        clock.advance(seconds=60)
        until(partial(_reached, seen, number), f"attempt {number}")


def _reached(seen: Callable[[], int], number: int) -> bool:
    return seen() >= number


def test_a_receiver_that_fails_twice_gets_it_on_the_third_try_and_once(
    fleet: Fleet, clock: Clock
) -> None:
    receiver = Receiver()
    with serving(receiver.app) as url:
        channel(fleet, "ops", "webhook", url=f"{url}/hook", allow_private=True)
        a_dead_letter(fleet)
        # The leader is a worker: nobody calls the evaluation by hand.
        worker = fleet.worker(
            "critical=2", app=None, FAIRLANE_SECRET_KEY=KEY, FAIRLANE_LEASE_SECONDS=PATIENT
        )
        until(lambda: receiver.calls, "the first try")
        retries(fleet, clock, lambda: len(receiver.calls), 3)
        job = fleet.ask("select job_id from fairlane.notification where channel = 'ops'")
        fleet.until_status(job, "succeeded")

    for headers, body in receiver.calls:
        verify(headers, body, url.removeprefix("http://"))
    assert {headers["idempotency-key"] for headers, _ in receiver.calls} == {str(job)}
    (news,) = receiver.taken
    assert (news["event"], news["rule"], news["severity"]) == ("firing", "dead_letters", "warning")
    assert "dead letters wait for a person (1 job, over 0)" in news["summary"]
    assert worker.said("alert dead_letters, firing: dead letters")
    told = "select tenant, source, source_ref from fairlane.jobs where id = %s"
    row = fleet.db.execute(told, [job]).fetchone()
    assert row == ("fairlane-system", "system", "alert:dead_letters")


def test_a_mail_goes_to_a_server_that_takes_it_at_the_second_try(
    fleet: Fleet, clock: Clock
) -> None:
    with mail_server(refusing=1) as box:
        channel(fleet, "post", "mail", to=["ops@example.com", "dba@example.com"])
        fleet.worker(
            "default=2",
            FAIRLANE_SMTP_HOST="127.0.0.1",
            FAIRLANE_SMTP_PORT=str(box.port),
            FAIRLANE_SMTP_SECURITY="none",
            FAIRLANE_SMTP_FROM="fairlane@example.com",
            FAIRLANE_LEASE_SECONDS=PATIENT,
        )
        job = fleet.ask("select job_id from fairlane.test_alert('stuck_jobs') where job_id notnull")
        retries(fleet, clock, lambda: box.asked, 2)
        fleet.until_status(job, "succeeded")
    (mail,) = box.mails
    assert box.to == [["ops@example.com", "dba@example.com"]]
    assert mail["Subject"].startswith("[Fairlane] critical test: stuck_jobs test ")
    assert mail["From"] == "fairlane@example.com"
    assert "What to do: docs/operating/runbooks.md, stuck_jobs" in mail.get_content()


def test_where_no_worker_is_left_the_scheduler_says_so(fleet: Fleet) -> None:
    fleet.db.execute("update fairlane.alert_rule set is_enabled = name = 'no_worker'")
    fleet.ask("select fairlane.set_alert_rule('no_worker', '{\"for_seconds\": 0}')")
    fleet.ask('select fairlane.define(\'[{"key": "gone", "executor": "command"}]\')')
    fleet.enqueue("gone")
    scheduler = Process(fleet.url, ["scheduler"], fleet.folder / "scheduler.log", {})
    fleet.processes.append(scheduler)
    scheduler.until_said(
        "alert no_worker, firing: default: due jobs wait in a queue that no worker"
    )
    assert scheduler.stop() == 0
    # Nobody came to sweep: it was told from what has arrived.
    assert fleet.ask("select count(*) from fairlane.arrival") == 1


def test_nobody_else_sends_in_fairlanes_name(fleet: Fleet) -> None:
    receiver = Receiver(0)
    with serving(receiver.app) as url:
        channel(fleet, "ops", "webhook", url=f"{url}/hook", allow_private=True)
        channel(fleet, "post", "mail", to=["ops@example.com"])
        fleet.worker("default=2", app=None)
        jobs = [
            fleet.enqueue("fairlane.alert.ops", '{"event": "firing"}'),
            fleet.enqueue("fairlane.mail", '{"to": ["x@example.com"], "news": {}}'),
        ]
        for job in jobs:
            fleet.until_status(job, "dead_letter", "failed")
    assert receiver.calls == []
    error = fleet.ask("select last_error ->> 'message' from fairlane.jobs where id = %s", jobs[0])
    assert error == '"fairlane.alert.ops" is Fairlane\'s own; nobody else enqueues it'


def test_a_channel_that_cannot_be_used_keeps_nobody_from_the_news(fleet: Fleet) -> None:
    channel(fleet, "ops", "webhook", url="https://x.example/hook")
    fleet.db.execute("update fairlane.definition set is_active = false")
    rows = fleet.db.execute(
        "select channel, job_id, error from fairlane.test_alert('dead_letters')"
    ).fetchall()
    told = {row[0]: (row[1], row[2]) for row in rows}
    assert told["log"] == (None, None)
    assert told["ops"][0] is None
    assert 'definition "fairlane.alert.ops"' in str(told["ops"][1])
