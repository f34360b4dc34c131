"""Role by call by id, made from the OpenAPI document: a call that nobody thought of fails here."""

from typing import Any

import httpx2

from api.calls import BODIES, PREFIX, Operation, operations
from api.world import World
from attacks.cast import Player
from attacks.tally import Tally, tallied
from attacks.things import KINDS, thing_of, unknown_id
from support.core import Core

OPERATIONS = list(operations())
GOOD = {200, 201, 202}
# Of the installation: there is one, and it is no tenant's.
OF_ALL = {"own", "fellow", "foreign"}


def is_stream(operation: Operation) -> bool:
    return "text/event-stream" in str(operation.document["responses"].get("200"))


def expected(player: Player, operation: Operation, kind: str | None) -> set[int]:
    """The rule, told once more and by other means than the product's."""
    if player.role is None:
        return {401}
    if not player.may(operation):
        return {403}
    if player.name == "operator" and (operation.of_tenant or operation.path == f"{PREFIX}/tokens"):
        return {422} if operation.of_tenant or operation.method == "POST" else GOOD
    if operation.role == "operator":
        return of_operators(player, operation, kind)
    if kind == "malformed":
        return {404, 422}
    if operation.role == "worker":
        if kind is None or (kind in OF_ALL and player.name == "worker"):
            return GOOD
        return {409}
    is_there = kind is None or kind in ("own", "fellow")
    if kind == "foreign":
        is_there = player.role == "operator" and player.tenant is None
    if not is_there:
        return {404}
    return {429} if is_stream(operation) else GOOD


def of_operators(player: Player, operation: Operation, kind: str | None) -> set[int]:
    """What is the installation's. Who acts for a tenant sees that tenant's part of it alone, and
    changes none."""
    puts = operation.method == "PUT"  # a name that is not there is made
    is_there = kind is None or kind in OF_ALL or puts
    if player.tenant is not None:
        return GOOD | {404, 422} if operation.method == "GET" else {403, 404, 422}
    return GOOD if is_there else {404, 422} if kind == "malformed" else {404}


async def call(player: Player, operation: Operation, about: str | None) -> httpx2.Response:
    body = operation.body
    options = {} if body is None else {"json": body}
    answer: httpx2.Response = await player.caller.call(
        operation.method, operation.url(about), **options
    )
    return answer


def test_a_call_that_needs_a_body_has_one_here() -> None:
    """So a new call cannot pass for refused because nothing was sent with it."""
    for operation in OPERATIONS:
        body = operation.document.get("requestBody", {})
        has = (operation.method, operation.path.removeprefix(PREFIX)) in BODIES
        assert has or not body.get("required"), f"{operation}: give it a body in tests/api/calls.py"


async def check(
    tally: Tally, world: World, player: Player, operation: Operation, kind: str | None, about: Any
) -> None:
    answer = await call(player, operation, about)
    tally.injected += 1
    tally.operations += 1
    wanted = expected(player, operation, kind)
    cell = f"{player}, {operation}, {kind or 'no'} id"
    tally.hold(answer.status_code in wanted, f"{cell}: {answer.status_code}, not {wanted}")
    if wanted == {404} and kind in ("foreign", "deleted"):
        never = unknown_id(operation)
        same = await call(player, operation, never)
        tally.operations += 1
        ours, theirs = told(answer, about), told(same, never)
        tally.hold(ours == theirs, f"{cell} is told from an unknown one: {ours} {theirs}")


def told(answer: httpx2.Response, named: str) -> tuple[Any, ...]:
    """All that a caller can tell one answer from another by, but the id that it sent."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("x-correlation-id", "content-length", "date")
    }
    return answer.status_code, answer.text.replace(named, "ID"), headers


async def test_every_role_may_make_its_calls_about_what_is_its_own_and_no_others(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    """Refusals come first, and leave every table as it was."""
    with tallied("role x call x id") as tally:
        chances: list[tuple[Player, Operation, str | None]] = []
        refused: list[tuple[Player, Operation, str | None, str | None]] = []
        for operation in OPERATIONS:
            kinds = KINDS if "{" in operation.path else (None,)
            things: dict[Any, str] = {}
            for player in cast.values():
                for kind in kinds:
                    if expected(player, operation, kind) & GOOD:
                        chances.append((player, operation, kind))
                        continue
                    tenant = player.tenant or "acme"
                    if kind is not None and (kind, tenant) not in things:
                        things[kind, tenant] = await thing_of(world, operation, kind, tenant)
                    refused.append((player, operation, kind, things.get((kind, tenant))))
        before = await everything(core)
        for player, operation, kind, about in refused:
            await check(tally, world, player, operation, kind, about)
        tally.hold(await everything(core) == before, "a call that was refused changed something")
        for player, operation, kind in chances:
            tenant = player.tenant or "acme"
            about = None if kind is None else await thing_of(world, operation, kind, tenant)
            await check(tally, world, player, operation, kind, about)
    assert tally.injected > 2000


async def everything(core: Core) -> dict[str, str]:
    """A print of every table, but for when a token or worker was last heard of."""
    tables = await core.fetch(
        "select relname::text from pg_class where relnamespace = 'fairlane'::regnamespace "
        "and relkind in ('r', 'p') and not relispartition"
    )
    return {name: await core.one(PRINT.format(name)) for (name,) in tables}


PRINT = """
select md5(coalesce(string_agg(line, ';' order by line), ''))
  from (select (to_jsonb(t) - 'last_used_at' - 'heartbeat_at' - 'lease_expires_at')::text
          from fairlane.{} t) rows (line)
"""
