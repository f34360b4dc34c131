"""Builds that are broken on purpose: what the harness must find, each by a short run of its own."""

from dataclasses import dataclass

from support.broken import Break


@dataclass(frozen=True)
class Broken:
    """These faults bring it out, and one of these invariants finds it."""

    what: Break
    faults: tuple[str, ...]
    found_by: tuple[str, ...]


BUILDS = {
    "gates let one more through": Broken(
        Break("take_turns", "g.capacity - g.running,", "g.capacity + 1 - g.running,"),
        ("cut",),
        ("I10",),
    ),
    "a failed attempt keeps its slot": Broken(
        Break("put_back", "'scheduled')::int, -1,", "'scheduled')::int, 0,"),
        ("cut",),
        ("I10", "I20"),
    ),
    "a lease ends two seconds early": Broken(
        Break(
            "rescue",
            "w.lease_expires_at <= v_now",
            "w.lease_expires_at <= v_now + interval '2 seconds'",
        ),
        ("stop_worker",),
        ("I12",),
    ),
    "a limit is changed and not written down": Broken(
        Break("set_tenant", "perform fairlane.note_settings", "perform concat"),
        ("flip_limits",),
        ("I21",),
    ),
}
