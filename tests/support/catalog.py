"""What a database holds under the name fairlane, a line a thing: for comparing two of them."""

from typing import Any

import asyncpg

# Books of the migrations themselves, and partitions named after the day they were made on.
OURS = (
    "n.nspname = 'fairlane' and c.relname not in ('migration', 'migration_pkey', 'repeatable', "
    "'repeatable_pkey') and c.relname !~ '^history_[0-9]{8}'"
)

THINGS = {
    "table": f"""
      select format('%s kind %s, options %s, partition %s by %s, security %s, grants %s', c.relname,
                    c.relkind, c.reloptions, c.relispartition, pg_get_partkeydef(c.oid),
                    c.relrowsecurity::text || c.relforcerowsecurity, c.relacl)
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where {OURS}
    """,
    # In order: the functions build rows of some of these tables by place.
    "column": f"""
      select format('%s.%s %s %s, not null %s, default %s, identity %s, generated %s, collation %s',
                    c.relname, row_number() over (partition by c.oid order by a.attnum), a.attname,
                    format_type(a.atttypid, a.atttypmod), a.attnotnull,
                    pg_get_expr(d.adbin, d.adrelid), a.attidentity, a.attgenerated,
                    a.attcollation::regcollation)
        from pg_attribute a
        join pg_class c on c.oid = a.attrelid
        join pg_namespace n on n.oid = c.relnamespace
        left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
       where {OURS} and a.attnum > 0 and not a.attisdropped
    """,
    "constraint": f"""
      select format('%s on %s: %s', o.conname, c.relname, pg_get_constraintdef(o.oid))
        from pg_constraint o
        join pg_class c on c.oid = o.conrelid
        join pg_namespace n on n.oid = c.relnamespace
       where {OURS}
    """,
    "index": f"""
      select format('%s, valid %s', pg_get_indexdef(i.indexrelid), i.indisvalid)
        from pg_index i
        join pg_class c on c.oid = i.indrelid
        join pg_namespace n on n.oid = c.relnamespace
       where {OURS}
    """,
    "view": f"""
      select format('%s: %s', c.relname, pg_get_viewdef(c.oid))
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where {OURS} and c.relkind in ('v', 'm')
    """,
    "function": """
      select format('%s: %s, grants %s', p.oid::regprocedure, pg_get_functiondef(p.oid), p.proacl)
        from pg_proc p
       where p.pronamespace = 'fairlane'::regnamespace and p.prokind in ('f', 'p')
    """,
    "type": """
      select format('%s %s', t.typname, t.typtype)
        from pg_type t
       where t.typnamespace = 'fairlane'::regnamespace and t.typtype in ('d', 'e', 'r')
    """,
    "trigger": f"""
      select pg_get_triggerdef(t.oid)
        from pg_trigger t
        join pg_class c on c.oid = t.tgrelid
        join pg_namespace n on n.oid = c.relnamespace
       where {OURS} and not t.tgisinternal
    """,
    "policy": """
      select format('%s', p) from pg_policies p where p.schemaname = 'fairlane'
    """,
    "comment": """
      select format('%s: %s', pg_describe_object(classoid, objoid, objsubid), description)
        from pg_description
       where pg_describe_object(classoid, objoid, objsubid) like '%fairlane.%'
    """,
    # What a new installation is born with.
    "row": """
      select format('plan %s', to_jsonb(t) - 'updated_at') from fairlane.plan t
       union all
      select format('queue %s', to_jsonb(t) - 'updated_at') from fairlane.queue t
       union all
      select format('doorbell %s', t) from fairlane.doorbell t
       union all
      select format('setting %s', t) from fairlane.setting t
       union all
      select format('sweep %s', t) from fairlane.sweep t
       union all
      select format('leader %s', t) from fairlane.leader t
    """,
}


async def catalog(conn: "asyncpg.Connection[Any]") -> set[str]:
    """Every thing there is, in words that are equal when the things are."""
    # A definition is written out with the schema's name or without, as the path has it.
    await conn.execute("set search_path = pg_catalog")
    lines: set[str] = set()
    for kind, sql in THINGS.items():
        lines |= {f"{kind} {row[0]}" for row in await conn.fetch(sql)}
    await conn.execute("reset search_path")
    return lines
