"""Builds that are broken on purpose: what the harness must find, each by a short run of its own."""

from dataclasses import dataclass

import asyncpg


@dataclass(frozen=True)
class Broken:
    """In this function, this text becomes that one; these faults bring it out, this finds it."""

    function: str
    text: str
    becomes: str
    faults: tuple[str, ...]
    found_by: tuple[str, ...]

    async def apply(self, connection: asyncpg.Connection) -> None:
        definition: str = await connection.fetchval(
            "select pg_get_functiondef(oid) from pg_proc"
            " where pronamespace = 'fairlane'::regnamespace and proname = $1",
            self.function,
        )
        if self.text not in definition:
            raise LookupError(f"fairlane.{self.function} no longer says {self.text!r}")
        await connection.execute(definition.replace(self.text, self.becomes))


BUILDS = {
    "gates let one more through": Broken(
        "take_turns", "g.capacity - g.running,", "g.capacity + 1 - g.running,", ("cut",), ("I10",)
    ),
    "a failed attempt keeps its slot": Broken(
        "put_back", "'scheduled')::int, -1,", "'scheduled')::int, 0,", ("cut",), ("I10", "I20")
    ),
    "a lease ends two seconds early": Broken(
        "rescue",
        "w.lease_expires_at <= v_now",
        "w.lease_expires_at <= v_now + interval '2 seconds'",
        ("stop_worker",),
        ("I12",),
    ),
    "a limit is changed and not written down": Broken(
        "set_tenant", "perform fairlane.note_settings", "perform concat", ("flip_limits",), ("I21",)
    ),
}
