"""Cursors are places in a list and no rights: another's shows nothing of theirs (S26)."""

from typing import Any

import pytest

from api.calls import PREFIX, operations
from api.world import World
from attacks.cast import Player
from attacks.tally import tallied
from support.core import Core

LISTS = [
    operation
    for operation in operations()
    if (
        operation.method == "GET"
        and "{" not in operation.path
        and operation.of_tenant
        and any(each.get("name") == "cursor" for each in operation.document.get("parameters", ()))
    )
    or (operation.path == f"{PREFIX}/tokens" and operation.method == "GET")
]
CANARY = "canary-of-acme-31c8"
ROWS = 5


async def fill(world: World, core: Core, tenant: str, said: str) -> None:
    """Some of everything that is listed."""
    caller = await world.caller("admin", tenant)
    for number in range(ROWS):
        named = {"correlation_id": said, "payload": {"text": said}}
        await core.enqueue(tenant, "a.task", **named)
        await world.died(tenant, "a.task", **named)
        on = {"trigger_type": "event", "event_name": "e", "definition_key": "a.task"}
        for path, body in (
            ("/events", {"name": said, "data": {}}),
            ("/triggers", {**on, "label": f"{said} {number}"}),
            ("/tokens", {"role": "viewer", "name": said}),
            ("/jobs/bulk", {"action": "cancel", "filter": {"ids": []}, "reason": said}),
        ):
            answer = await caller.post(path, body)
            assert answer.status_code < 300, answer.text


async def test_a_cursor_of_one_tenant_shows_another_its_own_rows_alone(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    await fill(world, core, "acme", CANARY)
    await fill(world, core, "other", "mine")
    assert len(LISTS) >= 6
    with tallied("cursors of another tenant") as tally:
        for operation in LISTS:
            path = operation.url(None)
            first = await cast["admin"].caller.get(path, limit=2)
            cursor = first.json()["next_cursor"]
            assert cursor, f"{operation} has more than a page"
            for limit in (1, 2, 200):
                answer = await cast["rival"].caller.get(path, limit=limit, cursor=cursor)
                tally.injected += 1
                good = answer.status_code in (200, 422)
                tally.hold(good, f"{operation}: {answer.status_code} {answer.text}")
                tally.hold(CANARY not in answer.text, f"{operation}: {answer.text}")
                tally.hold('"acme"' not in answer.text, f"{operation}: {answer.text}")


async def test_a_cursor_carries_no_filter_and_widens_none(
    world: World, cast: dict[str, Player], core: Core
) -> None:
    """With a cursor of the unfiltered list, a filter still holds."""
    await fill(world, core, "acme", "wanted")
    await fill(world, core, "acme", "unwanted")
    caller = cast["viewer"].caller
    newest = await core.enqueue("acme", "a.task", correlation_id="unwanted")
    page = await caller.get("/jobs", cursor=str(newest), correlation_id="wanted", limit=200)
    found = page.json()["items"]
    assert found
    assert {job["correlation_id"] for job in found} == {"wanted"}


WRONG: list[dict[str, Any]] = [
    {"limit": 201},
    {"limit": 0},
    {"limit": -1},
    {"limit": 10**30},
    {"offset": 1001},
    {"offset": -1},
    {"cursor": "' or 1=1 --"},
    {"cursor": "\x00"},
    {"cursor": "x" * 201},
    {"cursor": "٣" * 8},
]


async def test_a_page_too_far_too_large_or_made_up_is_refused(cast: dict[str, Player]) -> None:
    with tallied("pages that are none") as tally:
        for query in WRONG:
            for operation in LISTS:
                names = {each.get("name") for each in operation.document.get("parameters", ())}
                if not set(query) <= names:
                    continue
                answer = await cast["admin"].caller.get(operation.url(None), **query)
                tally.injected += 1
                # Where rows go by a name, any text is a place among them: of one's own rows.
                own = answer.status_code == 200 and "cursor" in query and "other" not in answer.text
                said = f"{operation}, {query}: {answer.status_code} {answer.text}"
                tally.hold(own or answer.status_code == 422, said)


@pytest.mark.scene
async def test_a_list_is_read_to_its_end_in_even_steps(world: World, core: Core) -> None:
    """Far down as fast as at the top: ten thousand jobs, two hundred at a time."""
    await core.flood("acme", "a.task", 10_000)
    caller = await world.caller("viewer", "acme")
    seen: set[str] = set()
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = (await caller.get("/jobs", limit=200, **more)).json()
        seen |= {job["id"] for job in page["items"]}
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == 10_000
