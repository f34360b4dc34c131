"""A token opens what it is for, until it ends; nothing that is kept of it opens anything."""

import asyncio
import re
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from access.estate import OPERATOR, Estate
from fairlane.access import secret, tokens
from fairlane.access.acting import Database
from fairlane.access.refusals import TokenNotFound, TokenRefused, Unauthenticated
from fairlane.access.roles import Permission, Role
from fairlane.access.verifier import TokenVerifier
from fairlane.core.calls import Call
from fairlane.errors import TenantNotFound
from support.clock import Clock
from support.core import Core


class Counting(Database):
    """Counts what it is asked."""

    asked = 0

    async def send(self, call: Call) -> Any:
        self.asked += 1
        return await super().send(call)


@pytest.fixture
def counting(straight: Database) -> Counting:
    return Counting(straight.pool)


async def test_a_token_is_its_holders_and_says_so(
    server: Database, estate: Estate, core: Core
) -> None:
    made = await tokens.create(core.conn, Role.MEMBER, tenant="acme", name="shop")
    verifier = TokenVerifier(server)
    who = await verifier.verify(made.token)
    assert (who.role, who.tenant, who.tenant_id) == (Role.MEMBER, "acme", estate.ids["acme"])
    assert who.token_id == made.id
    assert who.subject == f"token:{made.id}"
    await verifier.close()
    assert await core.one("select last_used_at from fairlane.tokens where id = $1", made.id)


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.WORKER])
async def test_an_operators_and_a_workers_token_have_no_tenant(
    straight: Database, core: Core, role: Role
) -> None:
    made = await tokens.create(core.conn, role)
    verifier = TokenVerifier(straight)
    who = await verifier.verify(made.token)
    await verifier.close()
    assert (who.role, who.tenant, who.scope) == (role, None, "*" if role is Role.OPERATOR else "")


async def test_the_database_keeps_nothing_that_opens(core: Core, estate: Estate) -> None:
    made = await tokens.create(core.conn, Role.ADMIN, tenant="acme")
    kept = ""
    for table in ("token", "audit"):
        kept += str([dict(row) for row in await core.fetch(f"select * from fairlane.{table}")])
    assert made.id in kept
    assert made.token[12:] not in kept
    assert made.token not in repr(made)
    assert made.token not in repr(secret.read(made.token))
    assert set(made.as_dict()) - {"token"} == set((await tokens.tokens(core.conn))[0].as_dict())


def test_a_scanner_finds_a_token_by_its_shape() -> None:
    made = secret.make()
    assert re.search(r"\bfl_[0-9A-Za-z]{8}_[0-9A-Za-z]{36}\b", f"token={made.text};")
    assert len({secret.make().text for _ in range(1000)}) == 1000


async def test_what_cannot_be_a_token_does_not_reach_the_database(
    counting: Counting, core: Core
) -> None:
    verifier = TokenVerifier(counting)
    good = (await tokens.create(core.conn, Role.OPERATOR)).token
    broken = [
        good[:at] + ("a" if good[at] != "a" else "b") + good[at + 1 :] for at in range(len(good))
    ]
    for text in (
        *broken,
        "",
        "fl_",
        good[:-1],
        good + "a",
        f" {good}",
        f"{good}\n",
        "é" * 48,
        "\0",
    ):
        with pytest.raises(Unauthenticated):
            await verifier.verify(text)
    assert counting.asked == 0


async def test_every_refusal_reads_the_same(
    straight: Database, estate: Estate, core: Core, clock: Clock
) -> None:
    """Unknown, someone else's secret, expired, revoked: a stranger cannot tell them apart."""
    verifier = TokenVerifier(straight)
    known = await tokens.create(core.conn, Role.VIEWER, tenant="acme")
    body = f"fl_{known.id}_{'0' * secret.SECRET_LENGTH}"
    expired = await tokens.create(
        core.conn, Role.VIEWER, tenant="acme", expires_in=timedelta(hours=1)
    )
    revoked = await tokens.create(core.conn, Role.VIEWER, tenant="acme")
    await tokens.revoke(core.conn, revoked.id)
    await verifier.verify(expired.token)
    verifier.forget_all()
    clock.advance(hours=1)
    said = set()
    for text in (secret.make().text, body + secret.checksum(body), expired.token, revoked.token):
        with pytest.raises(Unauthenticated) as refused:
            await verifier.verify(text)
        said.add(str(refused.value))
    assert len(said) == 1
    await verifier.close()


async def test_an_unknown_id_is_compared_all_the_same(
    straight: Database, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr("fairlane.access.verifier.hmac", SimpleNamespace(compare_digest=compare))
    verifier = TokenVerifier(straight)
    with pytest.raises(Unauthenticated):
        await verifier.verify(secret.make().text)
    assert [len(each) for each in compared[0]] == [32, 32]


async def test_a_good_token_is_remembered_for_a_moment(
    counting: Counting, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tokens.create(core.conn, Role.OPERATOR)
    verifier = TokenVerifier(counting)
    moment = 1000.0
    monkeypatch.setattr("fairlane.access.verifier.time", SimpleNamespace(monotonic=lambda: moment))
    for _ in range(5):
        await verifier.verify(made.token)
    await verifier.close()
    assert counting.asked == 2, "one look, one note of its use"
    await tokens.revoke(core.conn, made.id)
    await verifier.verify(made.token)
    moment += 10
    with pytest.raises(Unauthenticated):
        await verifier.verify(made.token)


async def test_a_token_is_not_remembered_beyond_its_end(
    straight: Database, core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tokens.create(core.conn, Role.OPERATOR, expires_in=timedelta(seconds=3))
    verifier = TokenVerifier(straight)
    moment = 1000.0
    monkeypatch.setattr("fairlane.access.verifier.time", SimpleNamespace(monotonic=lambda: moment))
    await verifier.verify(made.token)
    moment += 3
    await core.fetch(
        "update fairlane_test.clock set now_offset = now_offset + interval '3 seconds'"
    )
    with pytest.raises(Unauthenticated):
        await verifier.verify(made.token)
    await verifier.close()


async def test_last_used_is_written_once_a_minute(
    straight: Database, core: Core, clock: Clock
) -> None:
    clock.freeze()
    made = await tokens.create(core.conn, Role.OPERATOR)

    async def used() -> Any:
        verifier = TokenVerifier(straight)
        await verifier.verify(made.token)
        await verifier.close()
        return await core.one("select last_used_at from fairlane.token where id = $1", made.id)

    first = await used()
    clock.advance(seconds=59)
    assert await used() == first
    clock.advance(seconds=1)
    assert await used() == first + timedelta(seconds=60)


async def test_tokens_that_make_no_sense_are_refused(core: Core, estate: Estate) -> None:
    for role, wrong in (
        (Role.MEMBER, {}),
        (Role.OPERATOR, {"tenant": "acme"}),
        (Role.WORKER, {"tenant": "acme"}),
        (Role.OPERATOR, {"name": "x" * 201}),
        (Role.OPERATOR, {"name": "\0"}),
        (Role.OPERATOR, {"expires_in": timedelta(0)}),
        (Role.OPERATOR, {"expires_in": timedelta(days=40_000)}),
    ):
        with pytest.raises(TokenRefused):
            await tokens.create(core.conn, role, **wrong)
    with pytest.raises(TenantNotFound):
        await tokens.create(core.conn, Role.MEMBER, tenant="no-such")
    with pytest.raises(asyncpg.CheckViolationError):
        await core.fetch("select fairlane.create_token('aaaaaaaa', sha256('x'), 'member')")


async def test_an_admin_lists_and_revokes_its_tenants_tokens_and_no_others(
    server: Database, estate: Estate, core: Core
) -> None:
    admin = estate.principal("acme")
    async with server.acting(admin) as connection:
        assert [token.tenant for token in await tokens.tokens(connection)] == ["acme"]
        made = await tokens.create(connection, Role.VIEWER, tenant="acme")
    operators = [t.id for t in await tokens.tokens(core.conn) if t.role is Role.OPERATOR]
    for foreign in (estate.token["globex"], *operators, "nonesuch", "\0"):
        for named in ("acme", None):
            with pytest.raises(TokenNotFound) as refused:
                async with server.acting(admin) as connection:
                    await tokens.revoke(connection, foreign, named)
            assert "globex" not in str(refused.value)
    async with server.acting(admin) as connection:
        ended = await tokens.revoke(connection, made.id, "acme")
        again = await tokens.revoke(connection, made.id, "acme")
    assert ended.revoked_at is not None
    assert again.revoked_at == ended.revoked_at
    audited = await core.fetch(
        "select action, actor from fairlane.audit where target = $1 order by id", made.id
    )
    assert [tuple(row) for row in audited] == [
        ("token.create", admin.subject),
        ("token.revoke", admin.subject),
    ]


async def test_an_operator_sees_all_tokens_page_by_page(server: Database, estate: Estate) -> None:
    found: list[str] = []
    async with server.acting(OPERATOR) as connection:
        while page := await tokens.tokens(connection, after=found[-1] if found else None, most=2):
            found += [token.id for token in page]
    assert len(found) == 3
    assert len(set(found)) == 3


async def test_of_many_that_start_at_once_one_makes_the_first_operator_token(
    database: str, core: Core, straight: Database
) -> None:
    async def start() -> str | None:
        connection = await asyncpg.connect(database)
        try:
            return await tokens.first_operator_token(connection)
        finally:
            await connection.close()

    made = [text for text in await asyncio.gather(*(start() for _ in range(12))) if text]
    assert len(made) == 1
    verifier = TokenVerifier(straight)
    assert (await verifier.verify(made[0])).may(Permission.OPERATE)
    await verifier.close()
    # Whoever revoked the last one meant it.
    (only,) = await tokens.tokens(core.conn)
    await tokens.revoke(core.conn, only.id)
    assert await start() is None


async def test_the_list_is_in_the_order_of_its_index(core: Core) -> None:
    """Whatever the locale of the database: nothing is sorted in two places."""
    for _ in range(30):
        await tokens.create(core.conn, Role.WORKER)
    ids = [token.id for token in await tokens.tokens(core.conn, most=100)]
    paged: list[str] = []
    while page := await tokens.tokens(core.conn, after=paged[-1] if paged else None, most=7):
        paged += [token.id for token in page]
    assert paged == ids
    assert len(set(ids)) == 30
