"""The builds that are broken on purpose: the mistakes that others have made, and some of our own.

Where a mistake needs an order of steps to show, the check plays the orders; where it needs none,
the check is the attack itself.
"""

import socket
import uuid
from typing import Any
from uuid import UUID

from fairlane.access import acting
from fairlane.client import wire
from fairlane.executors.command.tail import last_of
from fairlane.ids import uuid7
from fairlane.redact import speaking
from fairlane.scheduler import firer
from faults.builds import checks
from faults.builds.build import Build, Statement
from faults.builds.checks import interleaved
from support.broken import Break

# A limit that is counted: what runs is counted, and nobody is kept from counting the same.
PLACES = "coalesce(g.capacity - g.running, 2147483647)"
COUNTED = """coalesce(g.capacity - (
  select count(*)::int from fairlane.job j join fairlane.lane l on l.id = j.lane_id
   where j.status = 'running' and g.id = any (l.gates)), 2147483647)"""
EACH_GATE = "from (select distinct unnest(t.gates)"
BEHIND_A_LOCK = (
    "from (select pg_advisory_xact_lock(4711)) as lock cross join (select distinct unnest(t.gates)"
)
STILL_LOST = """         and j.status = 'running'
         and (w.lease_expires_at <= v_now or w.state in ('lost', 'stopped'))
       order by j.id"""
# What has arrived is taken in first: who does that in a claim holds the other's share as well.
TWO_CLAIMS = ("sweep", "claim", "claim two")
LOCK_SHARES = "perform fairlane.lock_lanes(fairlane.lanes_of(hand_back.jobs), waiting => true);"
LOCK_GATES = "perform fairlane.lock_gates(fairlane.lanes_of(hand_back.jobs));"

_call = wire.Batch.call


def new_ids(batch: Any, *, again: bool = False, if_defined: bool = False) -> Any:
    for item in batch._items if again else ():
        item.id = uuid7()
    return _call(batch, again=again, if_defined=if_defined)


def as_the_item_says(who: Any, item: Any) -> dict[str, Any]:
    return {"tenant": who.tenant, **item, "created_by": who.subject}


def scrubbed_piece_by_piece(text: str, keep: int, gone: bool) -> str:
    return speaking().text(last_of(text, keep, gone))


def id_of_the_host() -> UUID:
    return uuid.uuid5(uuid.NAMESPACE_DNS, socket.gethostname())


async def until_the_bell_rings(claimer: Any) -> None:
    await claimer._woken.wait()


BUILDS = [
    Build(
        "finish does not ask for the attempt",
        interleaved("snooze", "claim two", "finish", points=False, switches=0),
        (Break("retire", "and j.attempt = a.attempt"),),
    ),
    Build(
        "finish does not ask for the worker",
        interleaved("finish by another", "heartbeat"),
        (Break("retire", "j.worker_id = retire.worker", "true"),),
    ),
    Build(
        "rescue goes by the id alone",
        interleaved("rescue", "rescue"),
        (
            Break(
                "rescue",
                "for no key update skip locked) locked\n           where w.lease",
                "for no key update) locked\n           where w.lease",
            ),
            Break(
                "rescue",
                "join fairlane.worker w on w.id = j.worker_id\n       where j.id",
                "left join fairlane.worker w on w.id = j.worker_id\n       where j.id",
            ),
            Break("rescue", STILL_LOST, "       order by j.id"),
        ),
    ),
    Build(
        "a limit is counted, not held",
        interleaved(*TWO_CLAIMS),
        (
            Break("take_turns", PLACES, COUNTED),
            Break("take_turns", "for no key update) g) locked", ") g) locked"),
        ),
    ),
    Build(
        "a limit is counted in the statement that takes the lock",
        interleaved(*TWO_CLAIMS),
        (
            Break("take_turns", PLACES, COUNTED),
            Break("take_turns", EACH_GATE, BEHIND_A_LOCK),
            Break("take_turns", "for no key update) g) locked", ") g) locked"),
        ),
    ),
    Build(
        "a job that is canceled keeps its place",
        interleaved("cancel running", "canceled"),
        (
            Break(
                "end_job",
                "perform fairlane.settle(v_gone.movements);",
                "if status <> 'canceled' then perform fairlane.settle(v_gone.movements); end if;",
            ),
        ),
    ),
    Build(
        "a key is had by who gets the lock at once",
        interleaved("enqueue fresh key", "enqueue, undone"),
        (
            Break(
                "enqueue_many",
                "and not (r.resend and fairlane.is_known(r.id))",
                "and not (r.resend and fairlane.is_known(r.id)) and (r.dedupe_key is null "
                "or pg_try_advisory_xact_lock(hashtextextended(r.dedupe_key, 0)))",
            ),
            Break("enqueue_many", "exit when v_missing is null;", "v_missing := null; exit;"),
        ),
    ),
    Build(
        "nobody polls",
        checks.a_job_that_nobody_rang_for_is_found,
        patches={
            "fairlane.worker.claimer:Claimer._rest": until_the_bell_rings,
        },
    ),
    Build(
        "a time of a schedule may be fired twice",
        interleaved("fire due", "fire due"),
        (Statement("alter table fairlane.firing drop constraint firing_pkey"),),
        {
            "fairlane.scheduler.firer:DUE": firer.DUE.replace(
                "for no key update of g skip locked", ""
            )
        },
    ),
    Build(
        "the tenant of a request outlives it",
        checks.the_next_request_on_a_connection_is_nobodys,
        patches={"fairlane.access.acting:ACT": acting.ACT.replace("true)", "false)")},
    ),
    Build(
        "a claim brings every payload along",
        checks.a_claim_is_answered_in_few_bytes,
        (
            Break(
                "claim_queues",
                "case when pg_column_size(payload) <= 4096 then payload end",
                "payload",
            ),
        ),
    ),
    Build(
        "the tenant is the one that the item names",
        checks.whoever_enqueues_enqueues_for_itself,
        patches={"fairlane.access.acting:owned": as_the_item_says},
    ),
    Build(
        "secrets are taken out of each piece alone",
        checks.no_half_of_a_secret_is_left_where_output_is_cut,
        patches={"fairlane.executors.command.hearing:_end_of": scrubbed_piece_by_piece},
    ),
    Build(
        "a worker is known by its host",
        checks.a_worker_may_start_where_another_died,
        patches={"fairlane.worker.life:uuid4": id_of_the_host},
    ),
    Build(
        "what is sent again is a new job",
        checks.a_job_whose_acknowledgement_was_lost_lands_once,
        patches={"fairlane.client.wire:Batch.call": new_ids},
    ),
    Build(
        "a sweep forgets transactions that were open",
        interleaved("enqueue", "emit", "sweep", points=False),
        (Break("take_in", "array(select pg_snapshot_xip(seen)) || seen_by", "'{}'::xid8[]"),),
    ),
    Build(
        "hand_back locks gates before shares",
        interleaved("hand back", "finish"),
        (Break("hand_back", f"{LOCK_SHARES}\n  {LOCK_GATES}", f"{LOCK_GATES}\n  {LOCK_SHARES}"),),
    ),
]
