"""Tenants from the application's own code."""

from typing import Any

import psycopg
import pytest

from fairlane import Fairlane
from fairlane.errors import FairlaneError, TenantExists, TenantNotFound

Db = psycopg.Connection[tuple[Any, ...]]
LOOK = "select plan, name, max_running from fairlane.tenant where slug = %s"


def test_a_tenant_is_made_and_changed(app: Fairlane, db: Db) -> None:
    app.create_tenant_sync("initech", "starter", name="Initech", max_running=2)
    assert db.execute(LOOK, ["initech"]).fetchone() == ("starter", "Initech", 2)

    app.set_tenant_sync("initech", plan="pro", max_running=None)
    assert db.execute(LOOK, ["initech"]).fetchone() == ("pro", "Initech", None)


def test_one_that_is_there_is_refused_or_left_as_it_is(app: Fairlane, db: Db) -> None:
    with pytest.raises(TenantExists, match="is there already"):
        app.create_tenant_sync("acme", "free")

    app.create_tenant_sync("acme", "free", exists_ok=True)

    assert db.execute(LOOK, ["acme"]).fetchone() == ("pro", "", None)


def test_a_tenant_and_its_first_job_are_there_if_the_sign_up_commits(
    app: Fairlane, db: Db, database: str
) -> None:
    with psycopg.connect(database) as sign_up:
        app.create_tenant_sync("initech", connection=sign_up)
        app.set_tenant_sync("initech", plan="starter", connection=sign_up)
        app.enqueue_sync("invoices.send", {"number": 1}, tenant="initech", connection=sign_up)
        assert db.execute(LOOK, ["initech"]).fetchone() is None
        sign_up.rollback()
    assert db.execute(LOOK, ["initech"]).fetchone() is None

    with psycopg.connect(database) as sign_up:
        app.create_tenant_sync("initech", connection=sign_up)
    assert db.execute(LOOK, ["initech"]).fetchone() == ("free", "", None)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"plan": "gold"}, 'plan "gold" is unknown'),
        ({"weight": -1}, "weight"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(
    app: Fairlane, db: Db, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(FairlaneError, match=told):
        app.set_tenant_sync("acme", **changes)
    with pytest.raises(TenantNotFound):
        app.set_tenant_sync("nobody", plan="free")

    assert db.execute(LOOK, ["acme"]).fetchone() == ("pro", "", None)


async def test_the_same_with_await(database: str, db: Db) -> None:
    async with Fairlane(database) as app:
        await app.create_tenant("initech")
        await app.set_tenant("initech", plan="pro")

    assert db.execute(LOOK, ["initech"]).fetchone() == ("pro", "", None)
