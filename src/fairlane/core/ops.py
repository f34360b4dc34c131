"""What operators ask of the whole installation, for the API and the command line alike."""

from datetime import datetime

from fairlane.core.calls import Call

# Of each question the columns that are shown, in the order of their importance.
ACTIVE = """
select id, tenant, definition_key, version, queue, started_at, running_seconds, timeout_seconds,
       attempt_count, max_attempts, phase, progress, worker, cancel_requested_at, correlation_id
  from fairlane.active_work
 where running_seconds >= $1
 order by started_at, id
 limit $2
"""


def backlog(most: int = 200) -> Call:
    """How many jobs wait, by kind; the deepest first."""
    return Call(
        "select * from fairlane.backlog_by_kind"
        " order by queued desc, scheduled desc, definition_key, queue limit $1",
        (most,),
    )


def active(most: int = 200) -> Call:
    """Running jobs with their phase; the longest first."""
    return Call(ACTIVE, (0.0, most))


def slow(seconds: float = 600, most: int = 200) -> Call:
    """Running jobs that take longer than so many seconds."""
    return Call(ACTIVE, (float(seconds), most))


def errors(most: int = 200) -> Call:
    """How work of the last hour ended, by kind; most failures first."""
    return Call(
        "select definition_key, queue, finished, failed, succeeded_with_errors, retried_attempts,"
        " rate::float8 as rate from fairlane.error_rate"
        " order by failed desc, finished desc, definition_key, queue limit $1",
        (most,),
    )


def throughput(most: int = 200) -> Call:
    """What each tenant got done in the last hour; most worker seconds first."""
    return Call(
        "select tenant, succeeded, finished, attempts, worker_seconds, mean_wait_seconds"
        " from fairlane.throughput_by_tenant order by worker_seconds desc, tenant limit $1",
        (most,),
    )


def samples(since: datetime, until: datetime | None = None, queue: str | None = None) -> Call:
    """How the queues stood, in at most 120 steps."""
    return Call("select * from fairlane.samples($1, $2, $3)", (since, until, queue))
