"""Looks through the built site for anything a browser would fetch from elsewhere."""

import re
import sys
from pathlib import Path

FETCHED = re.compile(
    r"<(?:script|img|iframe|source|video)\b[^>]*\bsrc=[\"']?(?:https?:)?//[^\"'\s>]+"
    r"|<link\b[^>]*\brel=[\"']?(?:stylesheet|preload|preconnect|icon)[^>]*\bhref=[\"']?"
    r"(?:https?:)?//[^\"'\s>]+"
    r"|@import\s+[\"']?https?://[^\"'\s)]+|url\(\s*[\"']?https?://[^\"'\s)]+"
)


def fetched(site: Path) -> list[str]:
    """Each place that names an address outside, of pages and style sheets."""
    found = []
    for file in sorted(site.rglob("*")):
        if file.suffix in (".html", ".css"):
            places = FETCHED.findall(file.read_text(errors="replace"))
            found += [f"{file.relative_to(site)}: {place}" for place in places]
    return found


if __name__ == "__main__":
    if outside := fetched(Path(sys.argv[1])):
        sys.exit("the site would fetch from elsewhere:\n" + "\n".join(outside))
