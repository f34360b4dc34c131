"""A call that is not made: what it would need is missing, or not allowed."""

from fairlane.errors import FairlaneError


class CallRefused(FairlaneError):
    """The call would break a rule of its definition or of this installation; trying again would
    not change that."""
