"""The blocks of code in a page, each with the word that stands in front of it.

A block that cannot run says why, in a comment right before it:

    <!-- not run: needs a cluster -->

What a block needs and a reader does not is a hidden block, which runs as if it were shown:

    <!-- python
    app.create_tenant_sync("acme")
    -->
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Words of no program: pictures, output, parts of a syntax. They say so by their language.
PROSE = ("text",)

FOUND = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<shown>.*?)^[ ]{0,3}(?P=fence)[ ]*$"
    r"|^<!-- (?P<word>[a-z]+)(?P<hidden>\n.*?\n)-->$"
    r"|^ *<!-- (?P<directive>[^\n]*?) -->$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    directive: str = ""  # of the comment right before it

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def reason(self) -> str | None:
        """Why it is not run, if it says so."""
        head, _, reason = self.directive.partition("not run:")
        return reason.strip() if not head.strip() and reason.strip() else None

    @property
    def run_by(self) -> str | None:
        """The test that runs it and holds it to more, if it names one."""
        match = re.fullmatch(r"run by: (\S+)", self.directive)
        return match[1] if match else None

    @property
    def file(self) -> str | None:
        """The file that its first line names: `# shop.py`."""
        match = re.match(r"# ([\w./-]+\.\w+)\n", self.text)
        return match[1] if match else None


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found: list[Block] = []
    directive, ended = "", 0
    for match in FOUND.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if match["directive"] is not None:
            directive, ended = match["directive"], match.end()
        elif match["word"]:
            found.append(Block(page, line, match["word"], match["hidden"].lstrip("\n")))
            ended = match.end() if not text[ended : match.start()].strip() else ended
        else:
            # A directive speaks of what follows it at once.
            near = not text[ended : match.start()].strip()
            word = directive if near else ""
            found.append(Block(page, line, match["language"], match["shown"], word))
            directive = ""
    return found
