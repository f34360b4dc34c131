"""What MkDocs calls while it builds: see mkdocs.yml."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from docsite import links  # noqa: E402
from docsite.reference import PAGES  # noqa: E402


def on_config(config: MkDocsConfig) -> None:
    config.nav = _filled_in(config.nav)


def on_files(files: Files, config: MkDocsConfig) -> None:
    for written, shown in links.OUTSIDE.items():
        if (ROOT / written).is_file():
            text = links.for_site((ROOT / written).read_text(), written, shown)
            files.append(File.generated(config, shown, content=text))
    for shown, page in PAGES.items():
        files.append(File.generated(config, shown, content=page()))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    if page.file.generated_by:
        return markdown
    return links.for_site(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)


def _filled_in(nav: Any) -> Any:
    if isinstance(nav, list):
        return [_filled_in(each) for each in nav]
    if isinstance(nav, dict):
        return {title: _filled_in(each) for title, each in nav.items()}
    if nav == "adr/*":
        return ["adr/README.md", *(f"adr/{page.name}" for page in sorted(_adr()))]
    return nav


def _adr() -> Iterator[Path]:
    return (ROOT / "docs/adr").glob("[0-9]*.md")
