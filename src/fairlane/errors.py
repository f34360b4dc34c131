"""The tree of errors: each says what, which and what next, in one line."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple


class FairlaneError(Exception):
    """The base of every error Fairlane raises on purpose."""

    sqlstate: ClassVar[str | None] = None


class ConfigError(FairlaneError):
    """A setting has a value it may not have."""

    def __init__(self, name: str, expected: str, *, got: str | None = None) -> None:
        self.name = name
        self.expected = expected
        found = "" if got is None else f", not {got}"
        super().__init__(f"{name} must be {expected}{found}")


class DatabaseUnavailable(FairlaneError):
    """There is no database to speak to."""


class ServerTooOld(FairlaneError):
    """The PostgreSQL server lacks what Fairlane builds on."""

    def __init__(self, version: str, *, needed: int) -> None:
        super().__init__(
            f"the server runs PostgreSQL {version}; Fairlane needs {needed} or newer: upgrade it, "
            "or unset FAIRLANE_DATABASE_URL to use the embedded one"
        )


class SchemaTooOld(FairlaneError):
    """The database waits for migrations this code brings."""

    def __init__(self, pending: list[str]) -> None:
        self.pending = pending
        super().__init__(
            f"the schema is older than this code, {', '.join(pending)} not applied; "
            "run: fairlane migrate"
        )


class SchemaTooNew(FairlaneError):
    """The database has migrations this code does not know."""

    def __init__(self, found: int, *, known: int) -> None:
        super().__init__(
            f"the schema is at migration {found:04}, this code knows up to {known:04}; "
            "upgrade fairlane here to the version that migrated the database"
        )


class MigrationError(FairlaneError):
    """A migration cannot be applied."""


class EmbeddedError(FairlaneError):
    """The embedded PostgreSQL cannot run."""


# Errors of the verbs. The database decides and says so in one sentence; each SQLSTATE of its class
# LN has one class here, so that a caller catches by name.


class LeaseLost(FairlaneError):
    """The attempt no longer holds its job; nothing was changed."""

    sqlstate = "LN001"


class IdInvalid(FairlaneError):
    """What was given is neither a UUID nor a short id."""


class JobNotFound(FairlaneError):
    """No such job, for whoever asked."""

    sqlstate = "LN002"


class WrongState(FairlaneError):
    """The job is in a state that the verb does not apply to."""

    sqlstate = "LN003"


class TenantNotFound(FairlaneError):
    """No tenant has this slug."""

    sqlstate = "LN101"


class DefinitionNotFound(FairlaneError):
    """Nothing of this key and version may run."""

    sqlstate = "LN102"


class DefinitionInactive(FairlaneError):
    """The definition is there, and switched off."""

    sqlstate = "LN103"


class QueueNotFound(FairlaneError):
    """No queue has this name."""

    sqlstate = "LN104"


class AlertNotFound(FairlaneError):
    """No alert, rule, channel or silence of this name."""

    sqlstate = "LN190"


class Fault(NamedTuple):
    """One thing wrong with a document, and where: a JSON pointer, and what was expected."""

    pointer: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or '/'}: {self.message}"


class Faulty(FairlaneError):
    """A document is refused; `faults` has everything that is wrong with it, each with its place."""

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        self.faults = list(faults)
        super().__init__(message)


class PayloadInvalid(Faulty):
    """The payload is not what may be stored or what the definition takes."""

    sqlstate = "LN105"


class PayloadTooLarge(PayloadInvalid):
    """The payload is over the size limit."""

    sqlstate = "LN106"


class RequestInvalid(FairlaneError):
    """A field of the request is out of range."""

    sqlstate = "LN107"


class BacklogFull(FairlaneError):
    """The tenant has as many live jobs as it may."""

    sqlstate = "LN108"


class JobIdTaken(FairlaneError):
    """The id was sent before, with another request."""

    sqlstate = "LN109"


class ValueRefused(FairlaneError):
    """A setting of a tenant, plan, queue or definition is out of range."""

    sqlstate = "LN110"


class DefinitionInvalid(Faulty):
    """A definition, or a file of them, is refused; nothing of it was stored."""


class TenantExists(FairlaneError):
    """The slug is taken."""

    sqlstate = "LN111"


class PlanNotFound(FairlaneError):
    """No plan has this name."""

    sqlstate = "LN112"


class TriggerNotFound(FairlaneError):
    """No such trigger, for whoever asked."""

    sqlstate = "LN113"


class OperationNotFound(FairlaneError):
    """No such operation, for whoever asked."""

    sqlstate = "LN120"


class WorkerNotFound(FairlaneError):
    """No such worker."""

    sqlstate = "LN121"


class TriggerInvalid(Faulty):
    """A trigger, or a file of them, is refused; nothing of it was stored."""


def _tree(root: type[FairlaneError]) -> list[type[FairlaneError]]:
    return [root, *(leaf for branch in root.__subclasses__() for leaf in _tree(branch))]


BY_SQLSTATE = {error.sqlstate: error for error in _tree(FairlaneError) if error.sqlstate}


def from_sqlstate(sqlstate: str | None, message: str) -> FairlaneError | None:
    """The error that the database meant, if it is one of ours."""
    found = BY_SQLSTATE.get(sqlstate or "")
    return found(message) if found else None
