-- One process at a time keeps house, for economy: every step is safe from any number of them, but for the floors
-- (fairlane.raise_floors), which a second hand may raise too far until they are looked through.
-- Answers whether `holder` leads now; the lead passes on when it has not been renewed in time, or when it
-- ends later than anybody renews it for: then the clock was set back, and who held it may be dead.
create or replace function fairlane.lead(holder uuid, seconds real default 1.25)
returns boolean
language plpgsql
as $$
#variable_conflict use_column
declare
  v_now timestamptz := fairlane.clock();
begin
  -- Who finds the row locked has found a leader at work.
  perform 1
     from fairlane.leader
    where holder = lead.holder
       or expires_at <= v_now
       or expires_at > v_now + 2 * make_interval(secs => lead.seconds)
      for no key update skip locked;
  if not found then
    return false;
  end if;
  update fairlane.leader
     set holder = lead.holder, expires_at = v_now + make_interval(secs => lead.seconds);
  return true;
end
$$;

-- What the leader does about once a second, in bounded steps. A rescue or a stuck job holds gates
-- until the end of the transaction, so what comes after it waits for the next tick: steps that take
-- gates or shares anew while gates are held would leave the order that everybody keeps.
create or replace function fairlane.tick()
returns table (rescued int, stuck int, promoted int, swept int)
language plpgsql
as $$
begin
  rescued := fairlane.rescue();
  stuck := 0;
  promoted := 0;
  swept := 0;
  if rescued = 0 then
    stuck := fairlane.park_stuck();
  end if;
  if rescued = 0 and stuck = 0 then
    promoted := fairlane.promote();
    swept := fairlane.sweep(thorough => true);
  end if;
  return next;
end
$$;

-- The tick, for whoever leads; nobody else does anything here.
create or replace function fairlane.housekeep(holder uuid)
returns table (leads boolean, rescued int, stuck int, promoted int, swept int)
language plpgsql
as $$
begin
  leads := fairlane.lead(housekeep.holder);
  if leads then
    select t.rescued, t.stuck, t.promoted, t.swept
      into rescued, stuck, promoted, swept
      from fairlane.tick() t;
    if rescued = 0 and stuck = 0 and promoted = 0 then
      -- What is left is found again after a crash; a sync that nobody waits for delays those that some do.
      perform set_config('synchronous_commit', 'off', true);
    end if;
  end if;
  return next;
end
$$;
