"""The data that every scene begins with: copied, so that it is made once."""

from functools import partial
from pathlib import Path

import psycopg

from fairlane.core import migrate
from fairlane.core.connect import connected, send
from fairlane.embedded import Embedded
from fairlane.testing.session import wait
from faults.scene_tasks import app


def make_seed(home: Path) -> Path:
    """Data with a migrated database."""
    with Embedded(home, durable=False) as url:
        wait(migrate.migrate(url))
        wait(_define(url))
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("""
                select fairlane.set_plan('pro', '{"max_backlog": null}'),
                       fairlane.set_queue('default', '{"max_backlog_per_tenant": null}')
                """)
    return home / "pg" / "data"


async def _define(url: str) -> None:
    async with connected(url) as connection:
        await app.register_through(partial(send, connection))
