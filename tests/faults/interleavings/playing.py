"""Plays one schedule: sessions take their steps in an order that somebody chooses.

A session stands at a point until it is told to go on. One that waits for another's lock is left
waiting, as in production, and goes on when it can. Who waits for whom is read from the server
(pg_blocking_pids), so nothing depends on how fast anything is. Each session's transaction is a
step at a time: the call, up to its first point, from point to point, and its end.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from support.core import Core

DEADLINE = 20.0

# The one who plays holds the lock of each session's next turn.
STATES = """
select array_agg(case when $2 = any (by) then 'stands' when by <> '{}' then 'waits' else 'goes' end
                 order by nth)
  from unnest($1::int[]) with ordinality as s (pid, nth)
 cross join lateral pg_blocking_pids(pid) by
"""
GO_ON = "select pg_advisory_lock($1::int, $2::int + 1), pg_advisory_unlock($1::int, $2::int)"
SOON = 0.002  # within it most steps are done; only then it is asked who waits for whom


@dataclass(frozen=True)
class Verb:
    """One transaction. `nothing` is what it answers when it found all in other hands."""

    call: Callable[[Any, Core], Awaitable[Any]]
    commits: bool = True
    nothing: Any = None
    gives_up: bool = False  # rather than wait for a lock
    passes_by: bool = False  # what belongs to a tenant that another session holds


@dataclass
class Part:
    """A session in its part, and how far it is."""

    core: Core
    number: int
    verb: Verb | None = None
    task: "asyncio.Task[None] | None" = None
    state: str = "done"  # or: begins, stands, waits, goes, ends
    answer: Any = None
    transaction: Any = None
    turn: int = 1  # the next that it waits for
    moved: asyncio.Event = field(default_factory=asyncio.Event)

    def hear(self, _: Any, message: Any) -> None:
        if str(message.message).startswith("turn "):
            self.turn = int(str(message.message).removeprefix("turn "))
            self.state = "stands"
            self.moved.set()

    @property
    def waits_briefly(self) -> bool:
        return self.state == "waits" and self.verb is not None and self.verb.gives_up

    @property
    def may_go_on(self) -> bool:
        return self.state in ("begins", "stands", "ends")

    async def begin(self, world: Any) -> None:
        assert self.verb
        self.transaction = self.core.conn.transaction()
        await self.transaction.start()
        try:
            self.answer = await self.verb.call(world, self.core)
        except Exception as error:
            self.answer = error
        self.state = "ends"
        self.moved.set()

    async def end(self) -> None:
        assert self.verb
        if isinstance(self.answer, Exception) or not self.verb.commits:
            await self.transaction.rollback()
        else:
            await self.transaction.commit()


@dataclass
class Played:
    """What came of a schedule: the answers, who went when, and whether it was a deadlock."""

    answers: list[Any]
    order: list[int] = field(default_factory=list)
    crossed: bool = False


Choose = Callable[[list[int], int | None], int]


class Player:
    def __init__(self, parts: Sequence[Part], door: "asyncpg.Connection[Any]") -> None:
        self.parts = parts
        self.door = door
        self.me = door.get_server_pid()
        self.stops = False

    @classmethod
    async def of(cls, sessions: Sequence[Core], door: "asyncpg.Connection[Any]") -> "Player":
        player = cls([Part(core, number) for number, core in enumerate(sessions)], door)
        for part in player.parts:
            part.core.conn.add_log_listener(part.hear)
            await door.execute("select pg_advisory_lock($1::int, 1)", part.number + 1)
        return player

    async def stop_at_points(self, stops: bool) -> None:
        """Whether sessions stop on their way, or only before they end."""
        if stops != self.stops:
            self.stops = stops
            for part in self.parts:
                me = str(part.number + 1) if stops else ""
                await part.core.conn.execute(f"set fairlane_test.me = '{me}'")

    async def play(self, world: Any, verbs: Sequence[Verb], choose: Choose) -> Played:
        """Play to the end; `choose` says who goes on, of those who may, and who went last."""
        cast = self.parts[: len(verbs)]
        for part, verb in zip(cast, verbs, strict=True):
            part.verb, part.state, part.answer, part.task = verb, "begins", None, None
        played = Played([])
        last: int | None = None
        while any(part.state != "done" for part in cast):
            ready = [part.number for part in cast if part.may_go_on]
            if ready:
                last = choose(ready, last)
                played.order.append(last)
                await self._go_on(world, cast[last])
            else:
                # All wait for each other: the server ends one of them.
                played.crossed = True
                going = [part.task for part in cast if part.task and not part.task.done()]
                await asyncio.wait(going, timeout=DEADLINE, return_when="FIRST_COMPLETED")
            await self._settle(cast)
        played.answers = [part.answer for part in cast]
        return played

    async def _go_on(self, world: Any, part: Part) -> None:
        part.moved.clear()
        match part.state:
            case "begins":
                part.state = "goes"
                part.task = asyncio.create_task(part.begin(world))
            case "ends":
                await part.end()
                part.state, part.task = "done", None
            case _:
                part.state = "goes"
                await self.door.execute(GO_ON, part.number + 1, part.turn)

    async def _settle(self, cast: Sequence[Part]) -> None:
        """Until each session stands, waits or has come to its end."""
        async with asyncio.timeout(DEADLINE):
            for part in cast:
                if part.state == "goes":
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(part.moved.wait(), SOON)
            while going := [part for part in cast if part.state in ("goes", "waits")]:
                pids = [part.core.conn.get_server_pid() for part in going]
                states = await self.door.fetchval(STATES, pids, self.me)
                for part, state in zip(going, states, strict=True):
                    # It may have said meanwhile where it stands.
                    if part.state in ("goes", "waits"):
                        part.state = "goes" if state == "stands" else state
                if not any(part.state == "goes" or part.waits_briefly for part in going):
                    return
                await asyncio.sleep(0.0003)
