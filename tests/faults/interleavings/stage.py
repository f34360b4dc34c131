"""The world, its players, and the judge: is what came out what one after the other would make?"""

import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Protocol

import asyncpg

from faults.interleavings import orders, points, told
from faults.interleavings.playing import Choose, Played, Player, Verb
from faults.interleavings.verbs import VERBS, plain
from faults.interleavings.world import World
from support.clock import Clock
from support.cluster import Cluster
from support.core import Core

TENANTS = ("acme", "beta")
HOLD = """
select from fairlane.share_lock k join fairlane.share s on s.id = k.share_id
  join fairlane.tenant t on t.id = s.tenant_id
 where t.slug = $1 for no key update of k
"""
CHECKS = 4  # of each schedule: the books, the moves of jobs, no deadlock, as if one after the other


# Pairs that come out as no serial order would have it, and why that is right all the same. They are
# judged by the books, the moves and the gates.
LOOSE = {
    frozenset({claim, "stop worker"}): "what was claimed meanwhile is rescued"
    for claim in ("claim two",)
}

Turn = tuple[str, str | None]  # a verb, and the tenant that somebody holds meanwhile
Serial = dict[tuple[Turn, ...], tuple[list[Any], Any]]


class Breaking(Protocol):
    """Something that is done to a database before it is put to the test."""

    async def apply(self, connection: "asyncpg.Connection[Any]") -> None: ...


class Stage:
    def __init__(
        self,
        world: World,
        player: Player,
        verbs: Mapping[str, Verb] = VERBS,
        serial: Serial | None = None,
    ) -> None:
        self.world = world
        self.player = player
        self.verbs = verbs
        self.schedules = 0
        self.steps = 0
        self.violations: list[str] = []
        # What one after the other makes of it; a broken build is judged by what a sound one does.
        self.serial: Serial = {} if serial is None else serial

    async def every(
        self,
        names: Sequence[str],
        *,
        switches: int | None = None,
        points: bool = True,
        enough: int = 1000,
    ) -> list[str]:
        """What is wrong with the schedules of these verbs, a sentence each, until it is enough."""
        await self.player.stop_at_points(points)
        wrong: list[str] = []
        async for played in orders.every(lambda choose: self._run(names, choose), switches):
            wrong += await self._judge(names, played)
            if len(wrong) >= enough:
                break
        return wrong

    async def some(self, names: Sequence[str], seed: str, count: int) -> list[str]:
        await self.player.stop_at_points(True)
        wrong: list[str] = []
        async for played in orders.some(lambda choose: self._run(names, choose), seed, count):
            wrong += await self._judge(names, played)
        return wrong

    async def _run(self, names: Sequence[str], choose: Choose) -> Played:
        await self.world.restore()
        return await self.player.play(self.world, [self.verbs[name] for name in names], choose)

    async def _judge(self, names: Sequence[str], played: Played) -> list[str]:
        self.schedules += 1
        self.steps += len(played.order)
        wrong = await told.what_is_wrong(self.world.core)
        if played.crossed:
            wrong.append("a deadlock")
        answers = tuple(
            plain(self.world, name, answer)
            for name, answer in zip(names, played.answers, strict=True)
        )
        outcome = await self.world.outcome()
        if not wrong and not any(pair <= set(names) for pair in LOOSE):
            allowed = []
            async for each in self._allowed(names, answers):
                if each == (answers, outcome):
                    break
                allowed.append(each)
            else:
                wrong.append(_difference(answers, outcome, allowed))
        order = " ".join(map(str, played.order))
        found = [f"{' + '.join(names)} in the order {order}: {each}" for each in wrong]
        self.violations += found
        return found

    async def _allowed(self, names: Sequence[str], answers: Sequence[Any]) -> AsyncIterator[Any]:
        """What the verbs make of it one after the other, in any order. Who found everything in
        other hands stood back, and is then as good as not called; a claim passes by a tenant that
        somebody holds, and takes the next."""
        idle = [
            place
            for place, name in enumerate(names)
            if self.verbs[name].nothing is not None and answers[place] == self.verbs[name].nothing
        ]
        passing = [place for place, name in enumerate(names) if self.verbs[name].passes_by]
        for held in itertools.product((None, *TENANTS), repeat=len(passing)):
            holds = dict(zip(passing, held, strict=True))
            for away in itertools.chain.from_iterable(
                itertools.combinations(idle, count) for count in range(len(idle) + 1)
            ):
                there = [place for place in range(len(names)) if place not in away]
                for order in itertools.permutations(there):
                    said, outcome = await self._one_after_the_other(
                        tuple((names[place], holds.get(place)) for place in order)
                    )
                    told_them = dict(zip(order, said, strict=True))
                    yield (
                        tuple(told_them.get(place, answers[place]) for place in range(len(names))),
                        outcome,
                    )

    async def _one_after_the_other(self, turns: tuple[Turn, ...]) -> tuple[Any, Any]:
        if turns not in self.serial:
            world = self.world
            await world.restore()
            said = []
            for name, held in turns:
                async with self._holding(held):
                    said.append(plain(world, name, await self._alone(self.verbs[name])))
            await world.core.assert_books_balance()
            self.serial[turns] = (said, await world.outcome())
        return self.serial[turns]

    async def _alone(self, verb: Verb) -> Any:
        transaction = self.world.core.conn.transaction()
        await transaction.start()
        try:
            answer = await verb.call(self.world, self.world.core)
        except Exception as error:
            await transaction.rollback()
            return error
        await (transaction.commit() if verb.commits else transaction.rollback())
        return answer

    @asynccontextmanager
    async def _holding(self, tenant: str | None) -> AsyncIterator[None]:
        """As a transaction would that is at work on something of this tenant's."""
        if tenant is None:
            yield
            return
        async with self.player.door.transaction():
            await self.player.door.execute(HOLD, tenant)
            yield


def _difference(answers: Any, outcome: Any, allowed: Sequence[Any]) -> str:
    """Against the order that comes nearest."""
    said, made = min(allowed, key=lambda each: _distance(outcome, each[1]))
    parts = [f"answered {answers}, not {said}"] if answers != said else []
    for what in outcome.keys() | made.keys():
        got, meant = outcome.get(what), made.get(what)
        if isinstance(got, dict) and isinstance(meant, dict):
            parts += [
                f"{what} {name}: {got.get(name)}, not {meant.get(name)}"
                for name in got.keys() | meant.keys()
                if got.get(name) != meant.get(name)
            ]
        elif got != meant:
            parts.append(f"{what}: {got}, not {meant}")
    return "not as in any serial order: " + "; ".join(parts)


def _distance(one: Any, other: Any) -> int:
    if isinstance(one, dict) and isinstance(other, dict):
        return sum(_distance(one.get(key), other.get(key)) for key in one.keys() | other.keys())
    return int(one != other)


@asynccontextmanager
async def staged(
    cluster: Cluster,
    template: str,
    sessions: int = 2,
    broken: Sequence[Breaking] = (),
    verbs: Mapping[str, Verb] = VERBS,
    serial: Serial | None = None,
) -> AsyncIterator[Stage]:
    """A database with the points put in, broken first if that is asked for."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(cluster.fresh(template))
        clock = stack.enter_context(Clock.of(url))

        async def connection() -> Core:
            conn: asyncpg.Connection[Any] = await asyncpg.connect(url)
            stack.callback(conn.terminate)
            return Core(conn)

        core = await connection()
        await core.conn.execute("set jit = off")  # the checks are long to read and quick to run
        world = await World.make(core, clock)
        for each in broken:
            await each.apply(core.conn)
        await points.put_in(core)
        await _quick_to_see_deadlocks(cluster, core)
        door = (await connection()).conn
        player = await Player.of([await connection() for _ in range(sessions)], door)
        yield Stage(world, player, verbs, serial)


async def _quick_to_see_deadlocks(cluster: Cluster, core: Core) -> None:
    """It is for a superuser to say; without one a deadlock is found as surely, a second later."""
    admin = await asyncpg.connect(cluster.admin)
    try:
        name = await core.one("select current_database()::text")
        await admin.execute(f"alter database \"{name}\" set deadlock_timeout = '30ms'")
    except asyncpg.InsufficientPrivilegeError:
        pass
    finally:
        await admin.close()
