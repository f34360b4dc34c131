"""Links as they are in the repository, turned into links of the site."""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Pages that stand outside of docs/, and where the site has them.
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "measuring.md",
    **{
        f"examples/{name}/README.md": f"examples/{name}.md"
        for name in ("breakthevibe", "dartwing", "docverse", "housefit", "zoltag")
    },
}

LINK = re.compile(r"(?P<bang>!?)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<to>[^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1\s*$", re.M | re.S)


def for_site(markdown: str, written_in: str, shown_at: str) -> str:
    """Links of a file of the repository as its page in the site needs them.

    What the site does not show (a folder, a file of code) stays as text.
    """

    def mended(match: re.Match[str]) -> str:
        to, anchor = _split(match["to"])
        if not to or "://" in to or to.startswith("mailto:"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(written_in), to))
        page = OUTSIDE.get(target) or _inside(target)
        if page is None:
            return match["text"]
        start = posixpath.dirname(shown_at) or "."
        return f"{match['bang']}[{match['text']}]({posixpath.relpath(page, start)}{anchor})"

    parts = []
    at = 0
    for fence in FENCE.finditer(markdown):
        parts += [LINK.sub(mended, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, LINK.sub(mended, markdown[at:])])


def _split(link: str) -> tuple[str, str]:
    to, mark, anchor = link.partition("#")
    return to, mark + anchor


def _inside(target: str) -> str | None:
    if target.startswith("docs/") and posixpath.splitext(target)[1]:
        return target.removeprefix("docs/")
    if target == "docs/adr":
        return "adr/README.md"
    return None
