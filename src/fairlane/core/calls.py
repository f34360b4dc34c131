"""A Call for each verb: the statement and its arguments, whoever sends it.

Everything that goes to the database as JSON goes as one text argument: any driver can send that,
and no codec that a user has set on the connection can touch it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from fairlane.core.json import dumps


@dataclass(frozen=True)
class Call:
    """One statement, one round trip. Arguments are $1, $2, ..."""

    sql: str
    args: tuple[Any, ...] = ()


# What an application brings ---------------------------------------------------


def enqueue(requests: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select * from fairlane.enqueue_many($1::text::jsonb)", (dumps(requests),))


def define(definitions: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select * from fairlane.define($1::text::jsonb)", (dumps(definitions),))


def definition(definition_id: UUID) -> Call:
    return Call("select * from fairlane.definition where id = $1", (definition_id,))


# The life of a worker, and of the attempts that it holds ----------------------


def register_worker(
    worker: UUID,
    name: str,
    queues: Mapping[str, int],
    *,
    hostname: str = "",
    pid: int | None = None,
    version: str = "",
    lease_seconds: float = 15,
    metadata: Mapping[str, Any] | None = None,
) -> Call:
    return Call(
        "select fairlane.register_worker($1, $2, $3::text::jsonb, $4, $5, $6, $7, $8::text::jsonb)",
        (
            worker,
            name,
            dumps(queues),
            hostname,
            pid,
            version,
            lease_seconds,
            dumps(metadata or {}),
        ),
    )


def claim(worker: UUID, queue: str, slots: int) -> Call:
    return Call("select * from fairlane.claim($1, $2, $3)", (worker, queue, slots))


def beat(worker: UUID, *, draining: bool = False) -> Call:
    """A row for each job that it holds; one without a job where it holds none."""
    return Call("select * from fairlane.beat($1, $2)", (worker, draining))


def claim_queues(worker: UUID, queues: Sequence[str], slots: Sequence[int]) -> Call:
    """In the order of the fields of an Attempt, which is made of a row without asking for each by
    its name."""
    return Call(
        "select job_id, attempt, counted, tenant_id, tenant, definition_key, version, queue,"
        " correlation_id, timeout_seconds, started_at, definition_id, revision, inputs_hash, reuse,"
        " trace, last_trace, waited, payload, max_attempts from fairlane.claim_queues($1, $2, $3)",
        (worker, queues, slots),
    )


def finish(
    worker: UUID,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    results: Sequence[str | None],
    errors: Sequence[str | None] | None = None,
) -> Call:
    """Results and errors are JSON texts."""
    return Call(
        "select * from fairlane.finish($1, $2, $3, $4::text[]::jsonb[], $5::text[]::jsonb[])",
        (worker, jobs, attempts, results, errors),
    )


def fail(
    worker: UUID,
    job: UUID,
    attempt: int,
    error: Mapping[str, Any],
    *,
    final: bool = False,
    retry_after: float | None = None,
    outcome: str = "failed",
) -> Call:
    return Call(
        "select fairlane.fail($1, $2, $3, $4::text::jsonb, $5, $6, $7)",
        (worker, job, attempt, dumps(error), final, retry_after, outcome),
    )


def snooze(worker: UUID, job: UUID, attempt: int, seconds: float) -> Call:
    return Call("select fairlane.snooze($1, $2, $3, $4)", (worker, job, attempt, seconds))


def canceled(worker: UUID, job: UUID, attempt: int) -> Call:
    return Call("select fairlane.canceled($1, $2, $3)", (worker, job, attempt))


def bounce(worker: UUID, job: UUID, attempt: int) -> Call:
    return Call("select fairlane.bounce($1, $2, $3)", (worker, job, attempt))


def hand_back(worker: UUID, jobs: Sequence[UUID], attempts: Sequence[int]) -> Call:
    return Call("select fairlane.hand_back($1, $2, $3)", (worker, jobs, attempts))


def fail_many(worker: UUID, failures: Sequence[Mapping[str, Any]]) -> Call:
    """Each failure has the names of fail's parameters."""
    return Call("select * from fairlane.fail_many($1, $2::text::jsonb)", (worker, dumps(failures)))


def prepare(
    worker: UUID,
    jobs: Sequence[UUID],
    attempts: Sequence[int],
    payloads: Sequence[str | None],
    hashes: Sequence[str | None],
) -> Call:
    """Payloads are JSON texts; None leaves what is stored."""
    return Call(
        "select * from fairlane.prepare($1, $2, $3, $4::text[]::jsonb[], $5)",
        (worker, jobs, attempts, payloads, hashes),
    )


def report(worker: UUID, reports: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select fairlane.report($1, $2::text::jsonb)", (worker, dumps(reports)))


def stop_worker(worker: UUID) -> Call:
    return Call("select fairlane.stop_worker($1)", (worker,))


def payload(worker: UUID, job_id: UUID, attempt: int) -> Call:
    return Call(
        "select payload::text from fairlane.job"
        " where id = $1 and worker_id = $2 and attempt = $3 and status = 'running'",
        (job_id, worker, attempt),
    )


# Keeping the house ------------------------------------------------------------


def housekeep(holder: UUID) -> Call:
    return Call("select * from fairlane.housekeep($1)", (holder,))


def run_chore(chore: str) -> Call:
    return Call("select fairlane.run_chore($1)::text", (chore,))


# Jobs that are there ----------------------------------------------------------


def job(job_id: UUID, tenant: str | None = None) -> Call:
    return Call(
        "select * from fairlane.jobs where id = $1 and ($2::text is null or tenant = $2)",
        (job_id, tenant),
    )


def newest(
    tenant: str | None,
    status: str | None,
    queue: str | None,
    definition: str | None,
    before: UUID | None,
    most: int,
) -> Call:
    """The ids of a page of jobs, newest first."""
    return Call(
        "select fairlane.newest_jobs($1, $2, $3, $4, $5, $6) as id",
        (tenant, status, queue, definition, before, most),
    )


def jobs(ids: Sequence[UUID]) -> Call:
    return Call("select * from fairlane.jobs where id = any ($1) order by id desc", (list(ids),))


def attempts(job_id: UUID, tenant_id: UUID | None = None) -> Call:
    """Each with the ends of what its command printed; all that is kept of it is in the logs."""
    return Call(ATTEMPTS, (job_id, tenant_id))


ATTEMPTS = """
select a.attempt, a.outcome, a.worker, a.started_at, a.finished_at, a.error,
       right(o.tail, 4096) as stdout_tail, right(e.tail, 4096) as stderr_tail
  from fairlane.attempts a
  left join fairlane.output o on (o.job_id, o.attempt, o.stream) = (a.job_id, a.attempt, 'stdout')
  left join fairlane.output e on (e.job_id, e.attempt, e.stream) = (a.job_id, a.attempt, 'stderr')
 where a.job_id = $1 and ($2::uuid is null or a.tenant_id = $2)
 order by a.attempt
"""


def cancel(job_id: UUID, reason: str | None = None, tenant: str | None = None) -> Call:
    return Call("select fairlane.cancel($1, $2, $3)", (job_id, reason, tenant))


def set_priority(job_id: UUID, priority: int | None = None, tenant: str | None = None) -> Call:
    """Without a number, ahead of all that wait in its lane."""
    return Call("select fairlane.set_priority($1, $2, $3)", (job_id, priority, tenant))


def retry(job_id: UUID, tenant: str | None = None) -> Call:
    return Call("select fairlane.retry($1, $2)", (job_id, tenant))


def explain(job_id: UUID, tenant: str | None = None) -> Call:
    return Call("select fairlane.explain($1, $2)::text", (job_id, tenant))


# Dead letters -----------------------------------------------------------------


def replay(
    job_id: UUID,
    payload: Mapping[str, Any] | None = None,
    notes: str | None = None,
    tenant: str | None = None,
    inputs_hash: str | None = None,
) -> Call:
    """With a payload that was validated comes its hash; without, the worker validates."""
    return Call(
        "select fairlane.replay($1, $2::text::jsonb, $3, $4, $5)",
        (job_id, None if payload is None else dumps(payload), notes, tenant, inputs_hash),
    )


def resolve(job_id: UUID, notes: str | None = None, tenant: str | None = None) -> Call:
    return Call("select fairlane.resolve($1, $2, $3)", (job_id, notes, tenant))


def ignore(job_id: UUID, notes: str | None = None, tenant: str | None = None) -> Call:
    return Call("select fairlane.ignore($1, $2, $3)", (job_id, notes, tenant))


def note_dead_letter(job_id: UUID, notes: str, tenant: str | None = None) -> Call:
    return Call("select fairlane.note_dead_letter($1, $2, $3)", (job_id, notes, tenant))


def assign_dead_letter(job_id: UUID, assignee: str | None, tenant: str | None = None) -> Call:
    return Call("select fairlane.assign_dead_letter($1, $2, $3)", (job_id, assignee, tenant))


def reopen_dead_letter(job_id: UUID, tenant: str | None = None) -> Call:
    return Call("select fairlane.reopen_dead_letter($1, $2)", (job_id, tenant))


# Alerts -----------------------------------------------------------------------


def acknowledge_alert(alert_id: UUID, note: str | None = None) -> Call:
    return Call("select fairlane.acknowledge_alert($1, $2)", (alert_id, note))


def silence_alerts(rule: str, subject: str, until: datetime, reason: str) -> Call:
    return Call("select fairlane.silence_alerts($1, $2, $3, $4)", (rule, subject, until, reason))


def end_silence(silence_id: UUID) -> Call:
    return Call("select fairlane.end_silence($1)", (silence_id,))


def set_alert_rule(name: str, changes: Mapping[str, Any]) -> Call:
    return Call("select fairlane.set_alert_rule($1, $2::text::jsonb)", (name, dumps(changes)))


def set_alert_channel(name: str, changes: Mapping[str, Any]) -> Call:
    return Call("select fairlane.set_alert_channel($1, $2::text::jsonb)", (name, dumps(changes)))


def test_alert(rule: str) -> Call:
    return Call("select * from fairlane.test_alert($1)", (rule,))


# Tenants, plans, queues and workers, by an operator ---------------------------


def create_tenant(slug: str, plan: str, name: str, changes: Mapping[str, Any]) -> Call:
    return Call(
        "select fairlane.create_tenant($1, $2, $3, $4::text::jsonb)",
        (slug, plan, name, dumps(changes)),
    )


def set_tenant(slug: str, changes: Mapping[str, Any]) -> Call:
    return Call("select fairlane.set_tenant($1, $2::text::jsonb)", (slug, dumps(changes)))


def set_plan(name: str, changes: Mapping[str, Any]) -> Call:
    return Call("select fairlane.set_plan($1, $2::text::jsonb)", (name, dumps(changes)))


def set_queue(name: str, changes: Mapping[str, Any]) -> Call:
    return Call("select fairlane.set_queue($1, $2::text::jsonb)", (name, dumps(changes)))


def pause_tenant(slug: str) -> Call:
    return Call("select fairlane.pause_tenant($1)", (slug,))


def resume_tenant(slug: str) -> Call:
    return Call("select fairlane.resume_tenant($1)", (slug,))


def pause_queue(name: str) -> Call:
    return Call("select fairlane.pause_queue($1)", (name,))


def resume_queue(name: str) -> Call:
    return Call("select fairlane.resume_queue($1)", (name,))


def drain_worker(worker: UUID) -> Call:
    return Call("select fairlane.drain_worker($1)", (worker,))


def forget_worker(worker: UUID) -> Call:
    return Call("select fairlane.forget_worker($1)", (worker,))


# Events and triggers ----------------------------------------------------------


def emit(events: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select * from fairlane.emit_many($1::text::jsonb)", (dumps(events),))


def schedule(holder: UUID, wait_seconds: float) -> Call:
    return Call("select * from fairlane.schedule($1, $2)", (holder, wait_seconds))


def stop_scheduling(holder: UUID) -> Call:
    return Call("select fairlane.stop_scheduling($1)", (holder,))


def take_events(most: int, after: UUID) -> Call:
    return Call("select * from fairlane.take_events($1, $2)", (most, after))


def deliver(deliveries: Sequence[Sequence[Any]], jobs: Sequence[Any]) -> Call:
    """A delivery is tenant, event, trigger, status, job, item and error, a JSON text."""
    columns = tuple(map(list, zip(*deliveries, strict=True))) or ([],) * 7
    return Call(
        "select fairlane.deliver($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb)",
        (*columns, dumps(jobs)),
    )


def give_up(tenant_id: UUID, event: int, error: Mapping[str, Any]) -> Call:
    return Call(
        "select fairlane.give_up($1, $2, $3::text::jsonb)", (tenant_id, event, dumps(error))
    )


def resend(
    tenant: str,
    event_id: str,
    new_id: str | None = None,
    *,
    triggers: Sequence[UUID] | None = None,
    failed: bool = False,
    emitted_by: str | None = None,
) -> Call:
    return Call(
        "select * from fairlane.resend($1, $2, $3, $4, $5, $6)",
        (tenant, event_id, new_id, triggers, failed, emitted_by),
    )


def prune_events() -> Call:
    return Call("select * from fairlane.prune_events()")


def fire(
    firings: Sequence[Mapping[str, Any]], jobs: Sequence[Any], plans: Sequence[Mapping[str, Any]]
) -> Call:
    return Call(
        "select fairlane.fire($1::text::jsonb, $2::text::jsonb, $3::text::jsonb)",
        (dumps(firings), dumps(jobs), dumps(plans)),
    )


def dedupe(items: Sequence[Mapping[str, Any]]) -> Call:
    return Call("select * from fairlane.dedupe($1::text::jsonb)", (dumps(items),))


def fire_now(trigger: UUID, job: Mapping[str, Any], tenant: str | None = None) -> Call:
    return Call(
        "select * from fairlane.fire_now($1, $2::text::jsonb, $3)", (trigger, dumps(job), tenant)
    )


# Saved lists of the web pages -------------------------------------------------


def save_view(tenant: str, name: str, query: str) -> Call:
    return Call("select fairlane.save_view($1, $2, $3)", (tenant, name, query))


def forget_view(tenant: str, name: str) -> Call:
    return Call("select fairlane.forget_view($1, $2)", (tenant, name))


# One verb for many jobs -------------------------------------------------------


def preview_operation(tenant: str, action: str, wanted: Mapping[str, Any]) -> Call:
    return Call(
        "select * from fairlane.preview_operation($1, $2, $3::text::jsonb)",
        (tenant, action, dumps(wanted)),
    )


def create_operation(
    tenant: str,
    action: str,
    wanted: Mapping[str, Any],
    note: str | None = None,
    per_second: float | None = None,
) -> Call:
    return Call(
        "select * from fairlane.create_operation($1, $2, $3::text::jsonb, $4, $5)",
        (tenant, action, dumps(wanted), note, per_second),
    )


def step_operation(
    operation: UUID | None = None, most: int | None = None, tenant: str | None = None
) -> Call:
    return Call("select * from fairlane.step_operation($1, $2, $3)", (operation, most, tenant))


def stop_operation(operation: UUID, tenant: str | None = None) -> Call:
    return Call("select * from fairlane.stop_operation($1, $2)", (operation, tenant))


def resume_operation(operation: UUID, tenant: str | None = None) -> Call:
    return Call("select * from fairlane.resume_operation($1, $2)", (operation, tenant))


def due_operation() -> Call:
    return Call("select fairlane.due_operation()")


def put_off_operation(operation: UUID) -> Call:
    return Call("select fairlane.put_off_operation($1)", (operation,))


def fail_operation(operation: UUID, error: str) -> Call:
    return Call("select fairlane.fail_operation($1, $2)", (operation, error))


def operation(operation: UUID, tenant: str | None = None) -> Call:
    return Call(
        "select * from fairlane.operations where id = $1 and ($2::text is null or tenant = $2)",
        (operation, tenant),
    )
