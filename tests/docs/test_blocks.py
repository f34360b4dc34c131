"""Every block of code in README and docs runs, in order, page by page; or says why it cannot."""

from pathlib import Path

import pytest

from docs.blocks import PROSE, ROOT, blocks, pages
from docs.running import Folder

LANGUAGES = ("console", "ini", "json", "python", "sh", "sql", "toml", "yaml")

WITH_CODE = [page for page in pages() if blocks(page)]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_page_does_as_it_says(
    page: Path, tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    folder = Folder(tmp_path, database)
    for name, value in folder.environment.items():
        monkeypatch.setenv(name, value)
    try:
        for block in blocks(page):
            if not (block.reason or block.run_by or block.language in PROSE):
                folder.run(block)
        folder.finish(block)
    finally:
        folder.close()


def test_every_block_has_a_language_and_runs_or_says_why_not() -> None:
    every = [block for page in pages() for block in blocks(page)]
    bare = [block.where for block in every if block.language not in (*LANGUAGES, *PROSE)]
    assert not bare, "a block needs a language; text is for what is no program"
    assert not [block.where for block in every if "not run" in block.directive and not block.reason]


def test_few_blocks_are_not_run() -> None:
    """A block that is not run may be untrue: think twice before you raise this number."""
    skipped = [
        f"{block.where}: {block.reason}"
        for page in pages()
        for block in blocks(page)
        if block.reason
    ]
    assert len(skipped) <= 12, "\n".join(skipped)


def test_what_another_test_runs_is_read_there_from_the_page() -> None:
    for page in pages():
        for block in blocks(page):
            if block.run_by:
                assert page.name in (ROOT / block.run_by).read_text(), block.where
