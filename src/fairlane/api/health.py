"""/healthz and /readyz: does the process live, and can it serve?"""

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from fairlane.api.answers import answer
from fairlane.api.service import Service
from fairlane.core import connect, migrate
from fairlane.errors import DatabaseUnavailable, FairlaneError, SchemaTooNew, SchemaTooOld

router = APIRouter(tags=["health"])

PATIENCE = 5.0


@router.get("/healthz", summary="The process lives")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="The server can serve",
    responses={503: {"description": "The database is away, or the schema is old."}},
)
async def readyz(request: Request) -> Response:
    """Asks the database each time: red when it is away or its schema is not this code's."""
    service: Service = request.app.state.fairlane
    try:
        async with asyncio.timeout(PATIENCE):
            await service.ready()
            async with connect.connected(service.url, name="fairlane readyz") as connection:
                await migrate.check(connection)
    except (SchemaTooOld, SchemaTooNew):
        return answer({"status": "unready", "detail": "the schema is not this code's"}, 503)
    except (DatabaseUnavailable, OSError):
        return answer({"status": "unready", "detail": "the database does not answer"}, 503)
    except FairlaneError as error:
        return answer({"status": "unready", "detail": type(error).__name__}, 503)
    return answer({"status": "ready"})
