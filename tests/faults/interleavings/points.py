"""Where a verb can be stopped on its way: between two statements, each of which sees anew.

In a scratch database the text of the functions is changed, so that each point waits for the one
who plays the schedule. A point whose text is gone is an error: the functions have moved on.
"""

from dataclasses import dataclass

from support.core import Core

# A session says that it stands, and waits for the lock of its next turn. Turns are counted by a
# sequence, which no rollback takes back.
STEP = """
create schema if not exists fairlane_test;
create or replace function fairlane_test.step() returns void language plpgsql as $$
declare
  v_me   int := nullif(current_setting('fairlane_test.me', true), '');
  v_turn int;
begin
  if v_me is not null then
    v_turn := nextval(format('fairlane_test.turn_%s', v_me));
    raise notice 'turn %', v_turn;
    perform pg_advisory_lock(v_me, v_turn);
    perform pg_advisory_unlock(v_me, v_turn);
  end if;
end
$$;
create sequence if not exists fairlane_test.turn_1 as int;
create sequence if not exists fairlane_test.turn_2 as int;
create sequence if not exists fairlane_test.turn_3 as int;
"""
# A statement that inserts many rows can be stopped between two of them, where that is asked for.
ROW_BY_ROW = "row by row"
ROWS = f"""
create or replace function fairlane_test.step_row() returns trigger language plpgsql as $$
begin
  perform fairlane_test.step();
  return new;
end
$$;
create or replace trigger step before insert on fairlane.job for each row
  when (new.correlation_id = '{ROW_BY_ROW}') execute function fairlane_test.step_row();
"""
CALL = "perform fairlane_test.step();\n  "


@dataclass(frozen=True)
class Point:
    """In this function before this text; without one, where the function begins."""

    function: str
    before: str = "\nbegin\n"


POINTS = [
    # A producer's way: what is asked for is looked up, inserted, noted.
    Point("enqueue_many", "for try in 1..5 loop"),
    Point("note_arrivals"),
    Point("replay", "insert into fairlane.job"),
    Point("settle_dead_letter"),
    Point("deliver"),
    Point("fire"),
    # Locks, in their order, and what is done under them.
    Point("open_lanes"),
    Point("lock_lanes"),
    Point("lock_gates"),
    Point("hold", "select * into v_job"),
    Point("cancel", "select * into v_job"),
    Point("retire"),
    Point("settle"),
    Point("take_in", "if v_news is not null"),
    Point("take_turns"),
    Point("claim_queues", "return query"),
    Point("promote", "with promoted as"),
    # A worker's end and its lease.
    Point("rescue", "update fairlane.worker"),
    Point("stop_worker", "if v_jobs is not null"),
    Point("stop_worker", "update fairlane.worker"),
    Point("beat", "perform fairlane.note_held"),
    # What an operator changes.
    Point("set_tenant_paused", "lock table"),
    Point("set_tenant_paused", "update fairlane.share"),
    Point("regate", "lock table"),
    Point("reset_gates"),
]

# Waiting that would only cost time here: the schedule says who comes when.
HASTE = {
    "wait_for_share": ("SET lock_timeout TO '10ms'", "SET lock_timeout TO '1ms'"),
    "prune": ("SET lock_timeout TO '200ms'", "SET lock_timeout TO '5ms'"),
}


async def put_in(core: Core) -> None:
    """Put the points into the functions of a scratch database."""
    await core.conn.execute(STEP)
    await core.conn.execute(ROWS)
    texts: dict[str, str] = {}
    for function in {point.function for point in POINTS} | set(HASTE):
        texts[function] = await core.one(
            "select pg_get_functiondef(oid) from pg_proc "
            "where pronamespace = 'fairlane'::regnamespace and proname = $1",
            function,
        )
    for point in POINTS:
        text = texts[point.function]
        if point.before not in text:
            raise LookupError(
                f"fairlane.{point.function} no longer says {point.before!r}; "
                "put the point elsewhere"
            )
        new = f"{point.before}  {CALL}" if point == Point(point.function) else CALL + point.before
        texts[point.function] = text.replace(point.before, new, 1)
    for function, (slow, fast) in HASTE.items():
        if slow not in texts[function]:
            raise LookupError(f"fairlane.{function} no longer says {slow!r}")
        texts[function] = texts[function].replace(slow, fast)
    for text in texts.values():
        await core.conn.execute(text)
