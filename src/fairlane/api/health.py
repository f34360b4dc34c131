"""/healthz and /readyz: does the process live, and can it serve?"""

from fastapi import APIRouter, Request
from starlette.responses import Response

from fairlane.api.answers import answer
from fairlane.api.service import Service

router = APIRouter(tags=["health"])


@router.get("/healthz", summary="The process lives")
async def healthz() -> dict[str, str]:
    return {"status": "ok"}


@router.get(
    "/readyz",
    summary="The server can serve",
    responses={503: {"description": "The database is away, or the schema is old."}},
)
async def readyz(request: Request) -> Response:
    """Asks the database, once a second at most: red when it is away or its schema is not this
    code's."""
    service: Service = request.app.state.fairlane
    wrong = await service.readiness.wrong()
    if wrong is not None:
        return answer({"status": "unready", "detail": wrong}, 503)
    return answer({"status": "ready"})
