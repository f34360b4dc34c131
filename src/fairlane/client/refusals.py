"""What the database meant by refusing, whichever driver brings the news."""

from collections.abc import Iterator

from fairlane.errors import DatabaseUnavailable, FairlaneError, RequestInvalid, from_sqlstate

# No such schema, table or function.
NOT_MIGRATED = ("3F000", "42P01", "42883")


def meant(sqlstate: str | None, message: str) -> FairlaneError | None:
    """The error of ours that a SQLSTATE stands for; none for what is not about the request."""
    if found := from_sqlstate(sqlstate, message):
        return found
    if sqlstate in NOT_MIGRATED and "fairlane" in message:
        return DatabaseUnavailable(
            f"Fairlane is not in this database, or older than this code ({message}); "
            "run: fairlane migrate"
        )
    if sqlstate and sqlstate.startswith("22"):
        return RequestInvalid(f"the database cannot take the request: {message}")
    return None


def meant_by(error: BaseException) -> FairlaneError | None:
    """The same, for an error of any driver, also one wrapped by SQLAlchemy or Django."""
    for each in _inside(error):
        if state := getattr(each, "sqlstate", None) or getattr(each, "pgcode", None):
            # psycopg puts the PL/pgSQL context below the message.
            return meant(state, str(each).partition("\n")[0])
    return None


def _inside(error: BaseException | None) -> Iterator[BaseException]:
    """The driver's error first, when it is wrapped: it tells most."""
    if error is not None:
        yield from _inside(getattr(error, "orig", None) or error.__cause__)
        yield error
