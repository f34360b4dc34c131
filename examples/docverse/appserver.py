"""Object store, edition pointers, GitHub and vault, mocked. The edition "broken" never works."""

from typing import Any

from fastapi import FastAPI, HTTPException, Request

web = FastAPI(openapi_url=None)
kept: dict[str, Any] = {}


@web.get("/builds/{build}")
async def objects(build: str) -> list[dict[str, Any]]:
    return [{"key": f"{build}/{page}.html", "bytes": 512} for page in ("index", "search")]


@web.put("/{kind}/{path:path}")
async def keep(kind: str, path: str, request: Request) -> None:
    if path.endswith("/broken"):
        raise HTTPException(504, "R2 timeout after 3 retries")
    kept[f"{kind}/{path}"] = await request.json()


@web.get("/refs")
async def refs() -> list[str]:
    return ["main"]


@web.get("/key")
async def key() -> dict[str, int]:
    return {"version": 2}


@web.post("/rewrap")
async def rewrap(request: Request) -> str:
    ciphertext: str = await request.json()
    return "vault:v2:" + ciphertext.split(":", 2)[2]
