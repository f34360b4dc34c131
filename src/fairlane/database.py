"""Which database a process speaks to: the configured one, or the embedded one."""

from collections.abc import Iterator
from contextlib import contextmanager

from fairlane.config import Settings
from fairlane.errors import DatabaseUnavailable


@contextmanager
def database(settings: Settings, *, start: bool) -> Iterator[str]:
    """The URL to use. A configured server is never started or stopped.

    Without one, `start=True` runs the embedded server for as long as the block
    lasts, and `start=False` joins the one that `fairlane up` runs.
    """
    if settings.database_url is not None:
        yield settings.database_url
        return

    # Needs POSIX, which a client with a URL of its own does not.
    from fairlane.embedded import Embedded, adopt

    if start:
        with Embedded(settings.home) as url:
            yield url
    elif (running := adopt(settings.home)) is not None:
        yield running
    else:
        raise DatabaseUnavailable(
            f"no database is configured and none runs in {settings.home}; "
            "run `fairlane up`, or set FAIRLANE_DATABASE_URL"
        )
