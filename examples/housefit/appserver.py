"""The application server, mocked: it answers by contract, fails once if FAIL_ONCE is set, and every
time for the site "poison". It prints what it did as JSON lines."""

import json
import os
from typing import Any

from fastapi import FastAPI, HTTPException, Request

web = FastAPI(openapi_url=None)
failures = {"left": 1 if os.environ.get("FAIL_ONCE") else 0}


@web.post("/gh/{definition}:{version}/solve")
async def solve(definition: str, version: str, request: Request) -> dict[str, Any]:
    inputs = await request.json()
    fails = failures["left"] > 0 or inputs["site"] == "poison"
    failures["left"] -= 1
    said = {
        "cid": request.headers.get("x-correlation-id"),
        "definition": f"{definition}@{version}",
        "status": "failed" if fails else "solved",
    }
    print(json.dumps(said), flush=True)
    if fails:
        raise HTTPException(503, "the solver is not there")
    panels = inputs["floors"] * 12
    return {"results": [{"panels": panels, "score": 0.5 if inputs["glazing"] == "double" else 0.9}]}
