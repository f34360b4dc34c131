"""One at a time, for verbs that make a thing or change it: who comes second finds it made."""

from fairlane.core.calls import Call


def one_at_a_time(what: str, name: str) -> Call:
    """Until the end of the transaction; what is read after it is what the one before has left."""
    return Call(
        "select pg_advisory_xact_lock(hashtextextended('fairlane.' || $1 || '/' || $2, 0))",
        (what, name),
    )
