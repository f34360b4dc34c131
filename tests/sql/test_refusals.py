"""What the core refuses: the error, one line that says what next, and nothing half-written."""

from typing import Any

import pytest

from fairlane.errors import (
    BacklogFull,
    DefinitionInactive,
    DefinitionNotFound,
    FairlaneError,
    JobIdTaken,
    PayloadInvalid,
    PayloadTooLarge,
    QueueNotFound,
    RequestInvalid,
    TenantNotFound,
)
from fairlane.ids import uuid7
from support.core import Core


@pytest.mark.parametrize(
    ("fields", "error", "says"),
    [
        (
            {"tenant": "nobody"},
            TenantNotFound,
            'tenant "nobody" is unknown; create it with: fairlane tenants create nobody',
        ),
        (
            {"definition": "nothing"},
            DefinitionNotFound,
            'definition "nothing" is unknown; define it with @app.job or: '
            "fairlane definitions apply FILE",
        ),
        ({"version": "9"}, DefinitionNotFound, 'definition "kind" version 9 is unknown'),
        ({"definition": "off"}, DefinitionInactive, 'definition "off" version 1 is not active'),
        (
            {"queue": "nowhere"},
            QueueNotFound,
            'queue "nowhere" is unknown; see: fairlane queues list',
        ),
        ({"queue": "nowhere", "max_attempts": 3}, QueueNotFound, 'queue "nowhere" is unknown'),
        (
            {"payload": [1]},
            PayloadInvalid,
            'the payload of "kind" is a JSON array; it must be an object',
        ),
        ({"payload": {"x": "y" * 300_000}}, PayloadTooLarge, "the limit is 262144"),
        ({"max_attempts": 0}, RequestInvalid, "max_attempts must be at least 1"),
        ({"source": "rumour"}, RequestInvalid, "source one of manual, event, schedule, system"),
        ({"dedupe_key": "k" * 513}, RequestInvalid, "1 to 512 characters"),
        ({"correlation_id": "c" * 513}, RequestInvalid, "correlation_id at most 512"),
        ({"concurrency_key": "k" * 513}, RequestInvalid, "1 to 512 characters"),
    ],
)
async def test_enqueue_refuses(
    core: Core, fields: dict[str, Any], error: type[FairlaneError], says: str
) -> None:
    await core.a_tenant("acme")
    await core.a_definition("kind")
    await core.a_definition("off", is_active=False)
    good = {"tenant": "acme", "definition": "kind"}

    for items in ([good | fields], [good, good | fields]):
        with pytest.raises(error) as caught:
            await core.enqueue_many(items)
        assert type(caught.value) is error
        message = str(caught.value)
        assert "\n" not in message
        if len(items) == 1:
            assert says in message
        else:
            assert "(item 2)" in message
    assert await core.one("select count(*) from fairlane.job") == 0
    assert await core.one("select count(*) from fairlane.arrival") == 0


async def test_two_items_with_one_id_for_two_kinds_are_refused(core: Core) -> None:
    await core.a_tenant("acme")
    one, two, same = await core.a_definition(), await core.a_definition(), uuid7()

    with pytest.raises(JobIdTaken):
        await core.enqueue_many(
            [{"tenant": "acme", "definition": kind, "id": same} for kind in (one, two)]
        )


async def test_a_backlog_limit_over_all_queues_counts_a_batch_as_a_whole(core: Core) -> None:
    await core.a_tenant("acme", max_backlog=3, backlog_policy="reject")
    kind = await core.a_definition()

    with pytest.raises(BacklogFull):
        await core.enqueue_many(
            [
                {"tenant": "acme", "definition": kind, "queue": queue}
                for queue in ("default", "default", "bulk", "bulk")
            ]
        )
    assert await core.one("select count(*) from fairlane.job") == 0


async def test_a_full_backlog_still_answers_for_a_job_that_it_has(core: Core) -> None:
    await core.a_tenant("acme", max_backlog=1, backlog_policy="reject")
    kind, job = await core.a_definition(), uuid7()
    await core.ask("acme", kind, id=job, dedupe_key="k")

    assert (await core.ask("acme", kind, id=job, dedupe_key="k"))["id"] == job
    again = await core.ask("acme", kind, dedupe_key="k")
    assert (again["id"], again["deduplicated"]) == (job, True)
