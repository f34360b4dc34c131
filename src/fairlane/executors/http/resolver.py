"""Names of receivers, answered with checked addresses alone."""

import socket

from aiohttp.abc import AbstractResolver, ResolveResult

from fairlane.executors.http.reach import AddressRefused, Reach


class CheckedResolver(AbstractResolver):
    """Answers with the addresses of a name that are within reach."""

    def __init__(self, reach: Reach, names: AbstractResolver) -> None:
        self._reach = reach
        self._names = names

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        found = await self._names.resolve(host, port, family)
        refusals = [self._reach.refusal(one["host"]) for one in found]
        within = [one for one, why in zip(found, refusals, strict=True) if why is None]
        if refusals and refusals[0] is not None and not within:
            raise AddressRefused(f"{host}: {refusals[0]}")
        return within

    async def close(self) -> None:
        await self._names.close()
