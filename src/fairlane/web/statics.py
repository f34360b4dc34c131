"""Our own files, under a name that changes with them: a browser keeps them for good."""

import gzip
import hashlib
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"


class Statics:
    def __init__(self) -> None:
        folder = files("fairlane.web") / "static"
        self._files = {
            each.name: each.read_bytes()
            for each in folder.iterdir()
            if each.name.rpartition(".")[2] in TYPES
        }
        digest = hashlib.sha256()
        for name in sorted(self._files):
            digest.update(name.encode() + self._files[name])
        self.version = digest.hexdigest()[:12]
        self._packed = {name: gzip.compress(body) for name, body in self._files.items()}

    def response(self, request: Request) -> Response | None:
        name: str = request.path_params["file"]
        if name not in self._files:
            return None
        packs = "gzip" in request.headers.get("accept-encoding", "")
        body = self._packed[name] if packs else self._files[name]
        headers = {"Cache-Control": FOREVER, "Vary": "Accept-Encoding"}
        if packs:
            headers["Content-Encoding"] = "gzip"
        if request.path_params["version"] != self.version:
            headers["Cache-Control"] = "no-cache"  # asked for by a page of another release
        kind = TYPES[name.rpartition(".")[2]]
        return Response(body, media_type=kind, headers=headers)


@cache
def statics() -> Statics:
    return Statics()
