"""Documents that an organisation's jobs reach, and nobody else's: the database sees to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from fairlane import Fail, JobContext

# FORCE binds the owner of the table as well, as whom the workers connect.
TABLES = """
create table if not exists dartwing_task (
  organization text not null default current_setting('fairlane.tenant'),
  name         text not null,
  title        text not null,
  primary key (organization, name)
);
alter table dartwing_task enable row level security;
alter table dartwing_task force row level security;
drop policy if exists of_the_organization on dartwing_task;
create policy of_the_organization on dartwing_task
  using (organization = current_setting('fairlane.tenant', true));
"""


async def create_tables(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(TABLES)
    finally:
        await connection.close()


@asynccontextmanager
async def org_context(ctx: JobContext) -> AsyncIterator[asyncpg.Connection]:
    """Whatever runs in here sees the rows of the job's organisation, and writes no others."""
    try:
        async with ctx.connection() as documents:
            yield documents
    except asyncpg.InsufficientPrivilegeError as error:
        raise Fail(f"Permission denied: {error}") from error  # the next try would be refused too
