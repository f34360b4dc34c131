"""The gateway that faxes, mails and tells, mocked. Whoever is called "busy" never answers well."""

from typing import Any

from fastapi import FastAPI, HTTPException, Request

web = FastAPI(openapi_url=None)


@web.post("/{way}")
async def deliver(way: str, request: Request) -> dict[str, Any]:
    body = await request.json()
    if body["to"] == "busy":
        raise HTTPException(503, "the line is busy")
    return {"delivered": way, "to": body["to"]}


@web.get("/archive/{organization}")
async def archive(organization: str) -> dict[str, str]:
    return {"organization": organization}
