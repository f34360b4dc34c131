"""Our own files, under a name that changes with them: a browser keeps them for good."""

import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response

TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
FOREVER = "public, max-age=31536000, immutable"

# A string is left as it is, whatever stands in it; a comment that has a line to itself goes with
# its line, one between words leaves a space; so do indents. Line breaks stay: they end statements.
_JS = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)"""
    r"""|(?P<line>^[ \t]*(?://[^\n]*|/\*(?:[^*]|\*(?!/))*\*/[ \t]*)\n)"""
    r"""|(?P<between>/\*(?:[^*]|\*(?!/))*\*/)"""
    r"""|(?P<indent>^[ \t]+|^\n)""",
    re.MULTILINE,
)


class Statics:
    def __init__(self) -> None:
        folder = files("fairlane.web") / "static"
        self._files = {
            each.name: _sent(each.name, each.read_bytes())
            for each in folder.iterdir()
            if each.name.rpartition(".")[2] in TYPES
        }
        digest = hashlib.sha256()
        for name in sorted(self._files):
            digest.update(name.encode() + self._files[name])
        self.version = digest.hexdigest()[:12]
        self._packed = {name: gzip.compress(body) for name, body in self._files.items()}

    def sizes(self, ending: str) -> dict[str, int]:
        """Bytes on the wire, by file."""
        return {name: len(body) for name, body in self._packed.items() if name.endswith(ending)}

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


def _sent(name: str, body: bytes) -> bytes:
    return stripped(body.decode()).encode() if name.endswith(".js") else body


def stripped(script: str) -> str:
    """A script without its comments and indents, which only we read."""

    def kept(found: re.Match[str]) -> str:
        if found["string"] is not None:
            return found["string"]
        return " " if found["between"] is not None else ""

    return _JS.sub(kept, script)


@cache
def statics() -> Statics:
    return Statics()
