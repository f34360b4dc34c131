"""The service behind a call: `here: Here`."""

from typing import Annotated

from fastapi import Depends, Request

from fairlane.api.correlating import CORRELATION
from fairlane.api.service import Service


async def _service(request: Request) -> Service:
    service: Service = request.app.state.fairlane
    return service


async def _correlation(request: Request) -> str:
    found: str = request.scope[CORRELATION]
    return found


Here = Annotated[Service, Depends(_service)]
CorrelationId = Annotated[str, Depends(_correlation)]
