"""Docverse's own tables, beside the jobs."""

import asyncpg

TABLES = """
create table if not exists edition (
  org        text        not null,
  project    text        not null,
  slug       text        not null,
  tracks     text        not null,                -- a git ref, or a pattern of them
  build      text,
  updated_at timestamptz not null default now(),
  deleted_at timestamptz,                         -- in purgatory since
  primary key (org, project, slug)
);
create table if not exists edition_build_history (
  org text, project text, slug text, build text, at timestamptz not null default now()
);
create table if not exists build_object (
  org text, project text, build text, key text, bytes bigint,
  primary key (org, project, build, key)
);
create table if not exists credential (org text primary key, ciphertext text not null);
"""


async def create_tables(database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(TABLES)
    finally:
        await connection.close()
