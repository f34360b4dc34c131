"""Views that people keep: each their own, in their own tenant."""

import asyncpg
import pytest

from fairlane.core import calls
from fairlane.errors import RequestInvalid
from support.core import Core


async def test_views_are_kept_by_who_keeps_them_and_in_no_other_tenant(core: Core) -> None:
    await core.a_tenant("acme")
    await core.a_tenant("globex")
    one = await core.one("select id from fairlane.tenant where slug = 'acme'")

    async def acts(subject: str, tenant: object) -> None:
        await core.fetch(
            "select set_config('fairlane.actor', $1, false),"
            " set_config('fairlane.tenant_id', $2, false)",
            subject,
            str(tenant),
        )

    await acts("ada", one)
    await core.send(calls.save_view("acme", " mine ", "state=failed"))
    await core.send(calls.save_view("acme", "mine", "state=dead"))
    await acts("bob", one)
    await core.send(calls.forget_view("acme", "mine"))
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await core.send(calls.save_view("globex", "theirs", ""))
    for name in ("", "x" * 61):
        with pytest.raises(RequestInvalid):
            await core.send(calls.save_view("acme", name, ""))
    rows = await core.fetch("select subject, name, query from fairlane.saved_view")
    assert [tuple(row) for row in rows] == [("ada", "mine", "state=dead")]
