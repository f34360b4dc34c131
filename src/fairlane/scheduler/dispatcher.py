"""Makes jobs of events: taken by turns, matched, rendered, written with their deliveries at once.

Whatever is wrong with one event, trigger or tenant stays with it. A batch that fails as a whole is
done with care, which finds the jobs that the database refuses; if that fails too, each event is
done alone, and one that cannot be done at all is put aside with the reason.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from fairlane.core import calls, json
from fairlane.core.calls import Call
from fairlane.core.connect import Connection, Record, send
from fairlane.metrics.scheduling import EVENT, Scheduling
from fairlane.scheduler.making import Made, Tenant, make, told
from fairlane.scheduler.matching import Matching
from fairlane.scheduler.settle import hold_back, keep_what_is_taken
from fairlane.scheduler.store import definitions
from fairlane.scheduler.trigger import INSTALLATION, Trigger
from fairlane.worker.patience import Patience

log = logging.getLogger("fairlane.scheduler")

BATCH = 500
MOST_MADE = 5000  # deliveries of a batch; one event may have more
LONGEST = 0.5  # seconds for making them: what a tenant's triggers take longer for waits its turn
ALONE = 100  # events done each alone, after a batch that could not be done

RETURN = """
insert into fairlane.emission (seq, tenant_id, event_id)
select * from unnest($1::bigint[], $2::uuid[], $3::text[])
"""


class Unreadable(ValueError):
    """The data of an event is beyond what can be read."""


class Dispatcher:
    def __init__(self, metrics: Scheduling | None = None) -> None:
        self._metrics = metrics or Scheduling()
        self._matching = Matching()
        self._after = INSTALLATION  # the tenant who had the last turn
        self.has_more = False  # at the last look, more than one batch waited

    async def tick(self, connection: Connection) -> int:
        """Dispatch a batch of events; how many. Zero means that nothing waits."""
        for careful in (False, True):
            try:
                return await self._batch(connection, BATCH, careful=careful)
            except Patience.passing:
                raise
            except Exception as error:
                if careful:
                    log.error("a batch of events cannot be dispatched: %s; each alone now", error)
        done = 0
        while done < ALONE and await self._alone(connection):
            done += 1
        return done

    async def _batch(self, connection: Connection, most: int, *, careful: bool) -> int:
        made: Sequence[Made] = ()
        done = 0
        async with connection.transaction():
            events = await send(connection, calls.take_events(most, self._after))
            if events:
                done, made = await self._dispatch(connection, events, careful)
            if done < len(events):
                left = [(each["seq"], each["tenant_id"], each["id"]) for each in events[done:]]
                columns = tuple(map(list, zip(*left, strict=True)))
                await send(connection, Call(RETURN, columns))
        self._metrics.fired(EVENT, (each.status for each in made))
        if done:
            self._after = events[done - 1]["tenant_id"]
        self.has_more = done < len(events) or len(events) > most // 2
        return done

    async def _alone(self, connection: Connection) -> bool:
        """Dispatch one event, or put it aside."""
        events: list[Record] = []
        made: Sequence[Made] = ()
        try:
            async with connection.transaction():
                events = await send(connection, calls.take_events(1, self._after))
                if events:
                    _, made = await self._dispatch(connection, events, True)
        except Patience.passing:
            raise
        except Exception as error:
            if not events:
                raise
            [event] = events
            log.exception("event %s cannot be dispatched, and is put aside", event["id"])
            said = told(error, None)
            await send(connection, calls.give_up(event["tenant_id"], event["seq"], said))
        self._metrics.fired(EVENT, (each.status for each in made))
        if events:
            self._after = events[0]["tenant_id"]
        return bool(events)

    async def _dispatch(
        self, connection: Connection, events: Sequence[Record], careful: bool
    ) -> tuple[int, Sequence[Made]]:
        """Make the jobs of as many events as one batch can hold, at least one; how many events, and
        what came of them."""
        taking = await self._matching.taking(connection, events)
        names = {trigger.definition_name for each in taking.values() for trigger in each}
        known = await definitions(connection, sorted(names, key=str))
        made: list[Made] = []
        done = 0
        start = time.monotonic()
        for event in events:
            made += self._made(event, self._matching.of(taking, event), known)
            done += 1
            if len(made) >= MOST_MADE or time.monotonic() - start > LONGEST:
                break
        await hold_back(connection, made)

        async def keep(part: Sequence[Made]) -> None:
            jobs = [each.job for each in part if each.job is not None]
            await send(connection, calls.deliver(_deliveries(part), jobs))

        if not made:
            pass
        elif careful:
            await keep_what_is_taken(connection, made, keep)
        else:
            await keep(made)
        return done, made

    def _made(
        self, event: Record, triggers: Sequence[Trigger], known: dict[Any, Any]
    ) -> list[Made]:
        if not triggers or event["name"] is None or event["slug"] is None:
            return []
        tenant = Tenant(event["tenant_id"], event["slug"], event["tenant_name"])
        try:
            data = json.loads(event["data"])
        except ValueError as error:
            said = told(Unreadable(f"the data of the event cannot be read: {error}"), None)
            return [_refused(trigger, tenant.id, event["seq"], said) for trigger in triggers]
        values = {"event": data}
        size = len(event["data"])
        about = {"source": "event", "source_ref": event["id"]}
        if event["correlation_id"] is not None:
            about["correlation_id"] = event["correlation_id"]
        found = []
        for trigger in triggers:
            try:
                if not trigger.takes.fits(data):
                    continue
            except Exception as error:
                log.exception("the filter of trigger %s cannot be followed", trigger.id)
                said = {"type": type(error).__name__, "message": "the filter cannot be followed"}
                found.append(_refused(trigger, tenant.id, event["seq"], said))
                continue
            definition = known.get(trigger.definition_name)
            found.append(make(trigger, tenant, values, definition, about, event["seq"], size))
        return found


def _refused(trigger: Trigger, tenant_id: UUID, seq: int, said: dict[str, Any]) -> Made:
    made = Made(trigger, tenant_id, "error", occasion=seq)
    made.refuse(said)
    return made


def _deliveries(made: Sequence[Made]) -> list[tuple[Any, ...]]:
    found = []
    item = 0
    for each in made:
        if each.job is not None:
            item += 1
        error = None if each.error is None else json.dumps(each.error)
        place = item if each.job is not None else None
        found.append(
            (
                *(each.tenant_id, each.occasion, each.trigger.id, each.status),
                *(each.job_id, place, error),
            )
        )
    return found
