"""What jobs went through, written down by triggers as it happens, and whether they may.

A job's moves are in the order in which they became true: whoever moves it holds its row. What is
rolled back was never told.
"""

from support import truth
from support.core import Core

# From where to where a job goes; docs/lifecycle.md tells of it.
LEGAL = {
    "scheduled": ["queued", "canceled"],
    "queued": ["running", "scheduled", "canceled"],
    "running": [
        *("queued", "scheduled", "succeeded", "succeeded_with_errors", "failed", "canceled"),
        "pending",
    ],
    "pending": ["retried", "resolved", "ignored"],
    "resolved": ["pending"],
    "ignored": ["pending"],
    "retried": ["queued"],
}

RECORD = """
create table world.told (
  seq bigint generated always as identity, xid xid8 not null default pg_current_xact_id(),
  job_id uuid not null, place text not null, status text not null, attempt int not null
);
create function world.tell() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    insert into world.told (job_id, place, status, attempt)
    values (old.id, tg_argv[0], 'gone', old.attempt);
  else
    insert into world.told (job_id, place, status, attempt)
    values (new.id, tg_argv[0], new.status, new.attempt);
  end if;
  return null;
end
$$;
"""
EACH = """
create trigger {table}_made after insert on fairlane.{table} for each row
  when (current_setting('fairlane_test.restoring', true) is distinct from 'yes')
  execute function world.tell('{table}');
create trigger {table}_moved after update on fairlane.{table} for each row
  when (current_setting('fairlane_test.restoring', true) is distinct from 'yes'
        and (old.status, old.attempt) is distinct from (new.status, new.attempt))
  execute function world.tell('{table}');
create trigger {table}_gone after delete on fairlane.{table} for each row
  when (current_setting('fairlane_test.restoring', true) is distinct from 'yes')
  execute function world.tell('{table}');
"""
PLACES = ("job", "dead_letter", "history")

FORGET = "delete from world.told;"

_LEGAL = ", ".join(f"('{old}', '{new}')" for old, ends in LEGAL.items() for new in ends)

# One that is sent again may be put in and taken out at once, when its first sending turns up: that
# was never there. Nor was an end that is written before the job is seen to be in other hands, and
# taken back. A replay is told by its letter; its row in `job` comes before or after.
QUESTIONS = {
    "a job went where it may not go": f"""
      with told as (
        select job_id, place, status, attempt, seq, min(seq) over same as since,
               bool_or(place = 'job' and status = 'gone') over same
                 and not bool_or(place <> 'job') over same as undone,
               place = 'history' and status <> 'gone'
                 and row_number() over (partition by job_id, xid, place, status = 'gone'
                                            order by seq desc)
                     <= count(*) filter (where place = 'history' and status = 'gone') over same
                 as unwritten
          from world.told
        window same as (partition by job_id, xid)
      ), known as (
        select job_id, place, status, attempt, since, seq
          from told
         where status <> 'gone'
           and not undone
           and not unwritten
         union all
        select id, 'before', status, attempt, 0, 0
          from (select id, status, attempt from world.job
                 union all select id, status, attempt from world.dead_letter
                 union all select id, status, attempt from world.history) before
         where id in (select job_id from world.told)
      ), moves as (
        select *, lag(status) over w as was, lag(attempt) over w as before
          from known
        window w as (partition by job_id
                         order by since, (place = 'job' and status = 'queued'), seq)
      )
      select format('job %s: from %s (%s) to %s (%s)', coalesce(n.name, m.job_id::text), m.was,
                    m.before, m.status, m.attempt)
        from moves m
        left join world.name n on n.id = m.job_id
       where m.was is not null
         and ((m.was, m.status) not in ({_LEGAL})
              or m.attempt <> m.before + (m.status = 'running')::int)
    """,
    "a gate lets more in than it has places": """
      select format('%s: %s of %s', g.scope, g.running, g.capacity)
        from fairlane.gate g
        left join world.gate w on w.id = g.id
       where g.running > greatest(g.capacity, w.capacity)    -- a limit may have been lowered
         and g.running > coalesce(w.running, 0)
    """,
}
QUERY = "\nunion all\n".join(
    f"select $q${question}: $q$ || wrong from ({sql}) m{number} (wrong)"
    for number, (question, sql) in enumerate(QUESTIONS.items())
)


async def record(core: Core) -> None:
    """Have everything told from now on."""
    await core.conn.execute(RECORD)
    for table in PLACES:
        await core.conn.execute(EACH.format(table=table))


async def ask(core: Core) -> None:
    """Keep the questions at hand; all that they look into is there by now."""
    await core.conn.execute(f"create view world.wrong (wrong) as {truth.QUERY} union all {QUERY}")


async def what_is_wrong(core: Core) -> list[str]:
    """With the books and with the moves of jobs, a sentence each, as one snapshot shows it."""
    return [row[0] for row in await core.conn.fetch("select wrong from world.wrong")]
