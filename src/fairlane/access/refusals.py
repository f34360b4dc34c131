"""Why somebody is not let in. A refusal never tells more than the caller knew already."""

from fairlane.errors import FairlaneError


class AccessError(FairlaneError):
    """The base of what access refuses."""


class Unauthenticated(AccessError):
    """No token, or one that is not (or no longer) good: 401."""


class Forbidden(AccessError):
    """The token is good and its role too low: 403."""


class ProviderUnavailable(AccessError):
    """The provider of sign-ins does not answer, so nobody can be proven: 503."""


class TookTooLong(AccessError):
    """A read ran into its time limit: 503, with what to narrow."""


class Busy(AccessError):
    """Too much is under way to wait for: 503, to be asked again in a moment."""


class TokenNotFound(AccessError):
    """No such token, or another tenant's: 404."""


class TokenRefused(AccessError):
    """A token cannot be made as asked: 422."""


class ServerRoleMissing(AccessError):
    """The database has no role for the server to act as; it must not start."""
