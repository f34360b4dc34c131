"""What a call needs, as the type of its first argument: `who: MayWrite`."""

from typing import Annotated

from fastapi import Depends, Request

from fairlane.access.principal import Principal
from fairlane.access.roles import Permission, Role

WHO = "fairlane.who"


class Permit:
    """A rule for a call. The route reads it and lets in, or refuses, before the body is read."""

    def __init__(
        self, permission: Permission, *, of_tenant: bool = True, also: tuple[Role, ...] = ()
    ) -> None:
        self.permission = permission
        self.of_tenant = of_tenant
        self.also = also

    def lets_in(self, who: Principal) -> bool:
        return who.may(self.permission) or who.role in self.also

    async def __call__(self, request: Request) -> Principal:
        who: Principal = request.scope[WHO]
        return who


# About one tenant: an operator names it.
MayRead = Annotated[Principal, Depends(Permit(Permission.READ))]
MayWrite = Annotated[Principal, Depends(Permit(Permission.WRITE))]
MayAdminister = Annotated[Principal, Depends(Permit(Permission.ADMINISTER))]

# About none in particular.
SignedIn = Annotated[
    Principal, Depends(Permit(Permission.READ, of_tenant=False, also=(Role.WORKER,)))
]
MayLook = Annotated[Principal, Depends(Permit(Permission.READ, of_tenant=False))]
MayOperate = Annotated[Principal, Depends(Permit(Permission.OPERATE, of_tenant=False))]
MayWork = Annotated[Principal, Depends(Permit(Permission.WORK, of_tenant=False))]
# Tokens: an admin's tenant's, or, for an operator who names no tenant, everybody's.
MayGiveTokens = Annotated[Principal, Depends(Permit(Permission.ADMINISTER, of_tenant=False))]
