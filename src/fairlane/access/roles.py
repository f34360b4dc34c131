"""Roles, and what each may do. A route names a permission; nobody compares roles by hand."""

from enum import StrEnum


class Role(StrEnum):
    """viewer < member < admin inside one tenant; operator over all; worker for its calls alone."""

    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"
    OPERATOR = "operator"
    WORKER = "worker"

    @property
    def is_of_tenant(self) -> bool:
        """Whether whoever has it belongs to one tenant, and to no more than one."""
        return self in _INSIDE

    def may(self, permission: "Permission") -> bool:
        return self in _WHO_MAY[permission]


class Permission(StrEnum):
    """What a call needs; the value is the lowest role that has it, as the contract's table says."""

    READ = "viewer"
    WRITE = "member"
    ADMINISTER = "admin"
    OPERATE = "operator"
    WORK = "worker"


_INSIDE = (Role.VIEWER, Role.MEMBER, Role.ADMIN)

_WHO_MAY: dict[Permission, frozenset[Role]] = {
    Permission.READ: frozenset({Role.VIEWER, Role.MEMBER, Role.ADMIN, Role.OPERATOR}),
    Permission.WRITE: frozenset({Role.MEMBER, Role.ADMIN, Role.OPERATOR}),
    Permission.ADMINISTER: frozenset({Role.ADMIN, Role.OPERATOR}),
    Permission.OPERATE: frozenset({Role.OPERATOR}),
    Permission.WORK: frozenset({Role.WORKER, Role.OPERATOR}),
}
